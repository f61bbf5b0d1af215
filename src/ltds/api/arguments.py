"""Arguments of public functions that must be written down in a run, so that it can be continued later."""

from __future__ import annotations

from ltds.core.errors import ConfigError, DataError, expected
from ltds.data.manifest import Manifest


def require_name(method: object, argument: str) -> None:
    """Refuse a class where its name is wanted: a run must be able to import it again."""
    if isinstance(method, type):
        name = f"{method.__module__}:{method.__qualname__}"
        remedy = f'Name it instead: "{name}".'
        if method.__module__ == "__main__":  # which is another program when the run is continued
            remedy = f'Put it into a file of its own, such as mine.py, and name it: "mine:{method.__qualname__}".'
        got = f"the class {method.__name__}"
        raise ConfigError(expected(f"argument '{argument}'", "a name", got, remedy))


def require_written(manifest: Manifest) -> None:
    """Refuse a manifest that its folder does not hold: a run that is resumed reads it from there."""
    try:
        written = Manifest.read(manifest.root).identity == manifest.identity
    except DataError:
        written = False
    if not written:
        rule, got = "the dataset in its folder", "one with other images, labels or splits"
        remedy = (
            "Write it first, to a folder of its own in which its paths lead to the images: "
            "dataclasses.replace(manifest, root=folder).write()."
        )
        raise DataError(expected(f"the manifest of '{manifest.root}'", rule, got, remedy))
