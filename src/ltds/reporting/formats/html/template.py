"""What every page shares: its style, its one script, and a security policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
from typing import Any


def render_template(template: str, **values: Any) -> str:
    """The HTML of a page. It loads nothing, everything in `values` is escaped, and only its own script may run."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("ltds.reporting.formats.html", ".")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    style, script = (Markup(loader.get_source(pages, file)[0]) for file in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return pages.get_template(template).render(style=style, script=script, script_digest=digest, **values)
