"""Methods by name: those of the package, and classes from outside given as "package.module:Class"."""

from __future__ import annotations

from ltds.core.registry import find_or_import
from ltds.methods.entry import MethodEntry
from ltds.methods.table import domains, long_tail, paper

METHODS: dict[str, MethodEntry] = {
    entry.name: entry for entry in (*long_tail.ENTRIES, *domains.ENTRIES, *paper.ENTRIES)
}


def list_methods() -> tuple[MethodEntry, ...]:
    """List every method of the package."""
    return tuple(METHODS.values())


def find_method(name: str) -> MethodEntry:
    """The method of this name, or an entry for the class that "package.module:Class" names."""
    found = find_or_import("method", name, METHODS)
    if isinstance(found, MethodEntry):
        return found
    from ltds.methods.outside import outside_entry  # needs torch, which a list of the methods does not

    return outside_entry(name, found)
