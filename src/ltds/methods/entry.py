"""MethodEntry: one line of the table of methods."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ltds.methods.base import Method

BASELINE = "Baselines"
LONG_TAIL = "Long-tailed recognition"
DOMAINS = "Domain generalization"
BOTH = "Both combined"
PAPER = "The paper's method"
ABLATIONS = "Its ablations"
ANCESTORS = "Its ancestors"
GROUPS = (BASELINE, LONG_TAIL, DOMAINS, BOTH, PAPER, ABLATIONS, ANCESTORS)
OUTSIDE = "Methods from outside the package"


@dataclass(frozen=True)
class MethodEntry:
    """A named method: its class, the settings that differ from the defaults, and where it comes from.

    `source`: its class, or the name of its class as "package.module:Class", which is imported on first use.
    `page`: its page in docs/methods, without ".md". `networks` and `passes` are formulas in K, the number of source
    domains: how many networks it trains, and how many batches of one domain go through a backbone in a step of the
    main phase (agg: K). For a class from outside the package all three are empty.
    """

    name: str
    source: type[Method] | str
    summary: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    group: str = OUTSIDE
    page: str = ""
    citations: tuple[str, ...] = ()
    networks: str = "1"
    passes: str = "K"
    remark: str = ""

    @cached_property
    def method(self) -> type[Method]:
        """The class."""
        if not isinstance(self.source, str):
            return self.source
        module, _, name = self.source.partition(":")
        found: type[Method] = getattr(importlib.import_module(module), name)
        return found
