"""Versions of the user's own modules: runs of different ones stay in a row, but a reader is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ltds.core.text import count
from ltds.reporting.run import Run
from ltds.reporting.used_files import DIGITS


def mixed_versions(name: str, rows: Mapping[str, Sequence[Run]]) -> list[str]:
    """A sentence for each module of which the runs of one table were made with several versions.

    Not another row for each, as with other files: most edits of a file, such as a second method in it, change nothing.
    Runs made before versions were recorded have none.
    """
    found: dict[str, dict[str, dict[str, int]]] = {}  # module -> version -> row -> number of runs
    for label, runs in rows.items():
        for run in runs:
            for module, version in _versions(run).items():
                counts = found.setdefault(module, {}).setdefault(version, {})
                counts[label] = counts.get(label, 0) + 1
    return [_sentence(name, module, versions) for module, versions in found.items() if _differ(versions)]


def _versions(run: Run) -> dict[str, str]:
    """Module -> digits of the checksum of its file; several in turn where the run was resumed with others."""
    codes = list(_codes(run))
    modules = dict.fromkeys(module for code in codes for module in code)
    turns = {module: [str(code[module])[:DIGITS] for code in codes if module in code] for module in modules}
    return {
        module: ", then ".join(new for i, new in enumerate(digits) if i == 0 or new != digits[i - 1])
        for module, digits in turns.items()
    }


def _codes(run: Run) -> Iterator[Mapping[str, object]]:
    """What the run recorded at its start and at each resume. An entry of `resumed` has only what was not as before."""
    first = run.environment.get("code")
    first = first if isinstance(first, Mapping) else {}
    resumed = run.environment.get("resumed")
    for part in [{}, *(resumed if isinstance(resumed, list) else [])]:
        code = part.get("code", first) if isinstance(part, Mapping) else first
        yield code if isinstance(code, Mapping) else first


def _differ(versions: Mapping[str, object]) -> bool:
    return len(versions) > 1 or any(", then " in version for version in versions)


def _sentence(name: str, module: str, versions: Mapping[str, Mapping[str, int]]) -> str:
    parts = []
    for version, counts in versions.items():
        shown = [f"{label} ({count(runs, 'run')})" for label, runs in counts.items()]
        parts.append(f"{version} for {', '.join(shown)}")
    return (
        f"Runs of '{name}' were made with different versions of the module '{module}': {'; '.join(parts)}. If the "
        "change matters, train them again in another folder."
    )
