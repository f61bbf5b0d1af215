"""Which runs may be compared: runs on the same images, in rows of one experiment each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ltds.core.added import ADDED
from ltds.reporting.code_versions import mixed_versions
from ltds.reporting.dataset import Dataset, ImageCounts
from ltds.reporting.run import Run
from ltds.reporting.used_files import EMBEDDINGS, UsedFile, file_texts

Texts = Mapping[Path, Mapping[str, str]]  # folder of a run -> its settings by dotted name, as a reader sees them


def group_runs(runs: Sequence[Run]) -> tuple[tuple[Dataset, ...], list[str]]:
    """The datasets of these runs, and a sentence for everything that makes a comparison less reliable."""
    groups: list[tuple[ImageCounts, list[Run]]] = []
    for run in runs:
        counts = {d: tuple(row) for d, row in zip(run.task.sources, run.task.counts.tolist(), strict=True)}
        for known, members in groups:
            if _same_images(members, run, known, counts):
                known.update(counts)
                members.append(run)
                break
        else:
            groups.append((counts, [run]))
    notes: list[str] = []
    names = _unique([members[0].task.name for _, members in groups])
    datasets = [_dataset(name, counts, members, notes) for name, (counts, members) in zip(names, groups, strict=True)]
    notes.extend(_other_images(names, [members for _, members in groups]))
    return tuple(datasets), notes


def _same_images(members: Sequence[Run], run: Run, known: ImageCounts, counts: ImageCounts) -> bool:
    a, b = members[0].task, run.task
    same_names = (a.name, a.classes, a.domains) == (b.name, b.classes, b.domains)
    alike = [other.task for other in members if other.task.held_out == b.held_out]
    same_test = all(other.trained_in_test == b.trained_in_test for other in alike)
    same_data = all(len(_recorded([*members, run], key)) < 2 for key in ("data", "content"))
    same_counts = all(known.get(domain, row) == row for domain, row in counts.items())
    return same_names and same_test and same_data and same_counts


def _recorded(runs: Iterable[Run], key: str) -> set[str]:
    """The values of a fingerprint in environment.json; runs made before there was one have none."""
    return {str(run.environment[key]) for run in runs if run.environment.get(key)}


def _other_images(names: Sequence[str], groups: Sequence[Sequence[Run]]) -> list[str]:
    """A sentence for each dataset that differs from one before it in nothing but the content of its image files."""
    notes = []
    for i, (name, members) in enumerate(zip(names, groups, strict=True)):
        for other, before in zip(names[:i], groups[:i], strict=True):
            both = [*before, *members]
            if len(_recorded(both, "data")) == 1 and len(_recorded(both, "content")) > 1:
                notes.append(f"'{name}' has the names of '{other}' but other images: their runs are not compared.")
                break
    return notes


def _dataset(name: str, counts: ImageCounts, runs: list[Run], notes: list[str]) -> Dataset:
    methods, texts = dict.fromkeys(run.method for run in runs), _texts(runs)
    rows: dict[str, tuple[Run, ...]] = {}
    for method in methods:
        for label, members in _variants(method, [run for run in runs if run.method == method], texts, notes).items():
            rows[label] = _without_repeats(members, notes)
    notes.extend(_different_settings(name, rows, texts))
    notes.extend(mixed_versions(name, rows))
    task = runs[0].task
    ordered = {domain: counts[domain] for domain in task.domains if domain in counts}
    return Dataset(name, task.classes, task.domains, ordered, rows)


def _texts(runs: Sequence[Run]) -> Texts:
    """The settings of runs that may be compared; texts are equal where settings are."""
    tables = {run.path: run.settings() for run in runs}
    files: dict[str, list[UsedFile]] = {}
    for table in tables.values():
        for key, value in table.items():
            if isinstance(value, UsedFile):
                files.setdefault(key, []).append(value)
    shown = {key: file_texts(used) for key, used in files.items()}
    return {
        path: {key: repr(shown[key][value] if isinstance(value, UsedFile) else value) for key, value in table.items()}
        for path, table in tables.items()
    }


def _variants(method: str, runs: list[Run], texts: Texts, notes: list[str]) -> dict[str, list[Run]]:
    """Label -> runs. Runs of one held-out domain with different settings are different experiments, not seeds."""
    values: dict[str, dict[str, set[str]]] = {}
    settings = [texts[run.path] for run in runs]
    keys = sorted({key for table in settings for key in table})
    for run, table in zip(runs, settings, strict=True):
        for key in keys:
            values.setdefault(key, {}).setdefault(run.held_out, set()).add(_value(table, key))
    split = [key for key in keys if any(len(distinct) > 1 for distinct in values[key].values())]
    for key in keys:
        if key not in split and len(set.union(*values[key].values())) > 1:
            by_domain = ", ".join(f"{next(iter(distinct))} for {domain}" for domain, distinct in values[key].items())
            notes.append(f"The average of '{method}' mixes settings: {key} is {by_domain}.")
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run, table in zip(runs, settings, strict=True):
        groups.setdefault(tuple(_value(table, key) for key in split), []).append(run)
    labels = _unique([_label(method, split, group_values) for group_values in groups])
    return dict(zip(labels, groups.values(), strict=True))


def _value(table: Mapping[str, str], key: str) -> str:
    """What a run's settings say for this key; one from before a setting existed has its old behaviour."""
    return table.get(key, repr(ADDED[key]) if key in ADDED else "unset")


def _label(method: str, keys: Sequence[str], values: Sequence[str]) -> str:
    if not keys:
        return method
    shown = [f"{key}={value}" for key, value in zip(keys, values, strict=True)]
    return f"{method} ({', '.join(shown[:3])}{', …' if len(shown) > 3 else ''})"


def _without_repeats(runs: Iterable[Run], notes: list[str]) -> tuple[Run, ...]:
    kept: dict[tuple[str, int], Run] = {}
    for run in runs:
        first = kept.setdefault((run.held_out, run.seed), run)
        if first is not run:
            notes.append(
                f"'{run.path}' repeats '{first.path}' (same settings and seed {run.seed}): only the latter counts."
            )
    return tuple(kept.values())


def _different_settings(name: str, rows: Mapping[str, tuple[Run, ...]], texts: Texts) -> list[str]:
    """A sentence for each setting outside [method] in which the rows of one table differ.

    Class embeddings count for methods that use some.
    """
    tables = {label: texts[runs[0].path] for label, runs in rows.items()}
    sentences = []
    for key in sorted({key for table in tables.values() for key in table if not key.startswith("method.")}):
        by_value: dict[str, list[str]] = {}
        for label, table in tables.items():
            if key in table or key != EMBEDDINGS:
                by_value.setdefault(_value(table, key), []).append(label)
        if len(by_value) > 1:
            values = "; ".join(f"{value} for {', '.join(labels)}" for value, labels in by_value.items())
            sentences.append(f"Rows of '{name}' were trained with different settings: {key} is {values}.")
    return sentences


def _unique(names: Sequence[str]) -> list[str]:
    """The names, with a number after each repeated one."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return result
