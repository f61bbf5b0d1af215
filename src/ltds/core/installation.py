"""What is installed here: versions of packages, and the extras of ltds that are complete or not. Loads none of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

# The extras that users choose, and what each is for; those for developers (test, docs, dev) are left out.
PURPOSES = {
    "efficientnet": "the pretrained networks efficientnet-lite0 to 2",
    "onnx": "export to ONNX",
    "ray": "benchmarks on a cluster",
    "sklearn": "ltds.sklearn, a scikit-learn classifier",
    "tensorboard": "event files for TensorBoard",
    "text": "class embeddings from names",
}
MAIN = ("torch", "numpy", "pillow", "pydantic", "safetensors", "typer")
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)[^;]*;.*extra\s*==\s*['\"](?P<extra>[^'\"]+)['\"]")


@dataclass(frozen=True)
class Extra:
    """An extra of ltds, what it is for, and its packages that are not installed."""

    name: str
    purpose: str
    missing: tuple[str, ...]


def installed_version(package: str) -> str | None:
    """The version of a package, or None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def extras() -> list[Extra]:
    """The extras as the installed package declares them; none where ltds is not installed but only on the path."""
    packages: dict[str, list[str]] = {}
    for name, extra in _declared():
        packages.setdefault(extra, []).append(name)
    return [
        Extra(name, PURPOSES.get(name, ""), tuple(p for p in needed if installed_version(p) is None))
        for name, needed in sorted(packages.items())
        if name not in ("test", "docs", "dev")
    ]


def _declared() -> Iterator[tuple[str, str]]:
    """(package, extra) for each requirement of an extra."""
    try:
        lines = requires("ltds") or []
    except PackageNotFoundError:
        return
    for line in lines:
        found = _REQUIREMENT.match(line)
        if found and found["name"] != "ltds":
            yield found["name"], found["extra"]
