"""A dataset from lists of images: text files of `path label [domain]` lines, or CSV files with named columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ltds.core.errors import DataError, expected
from ltds.core.progress import SILENT, Progress
from ltds.core.text import composed, text_lines
from ltds.data.build.dataset import build_dataset
from ltds.data.build.plan import Plan
from ltds.data.build.source import digests, find_root, relative_to
from ltds.data.datasets.folder import ONE_DOMAIN, make_plan, split_named
from ltds.data.datasets.list_files import ListedImage, ListsConfig, ignored_columns, read_lines
from ltds.data.manifest import Manifest

WHERE = "As argument 'source', name the folder that the paths in the lists are relative to."
BESIDE = (
    "The images lie in the folder of the list or below it: put the list into the folder that holds all of them, with "
    "paths from there. Or build a dataset first: the command 'ltds data build lists' takes that folder as argument "
    "'source'."
)


class ListedImages(NamedTuple):
    """All images of some lists: path, class, domain, split and group of each, and the classes in order.

    splits: None where they are to be drawn; groups: "" where a line names none, None where no line does;
    notes: sentences about what was ignored.
    """

    paths: list[str]
    classes: list[str]
    domains: list[str]
    splits: list[str] | None
    groups: list[str] | None
    class_order: tuple[str, ...]
    notes: list[str]


def build(
    out: Path,
    source: Path,
    files: Sequence[Path],
    config: ListsConfig,
    *,
    classes: Path | None = None,
    name: str = "",
    progress: Progress = SILENT,
) -> Manifest:
    """The images that the lists name. `classes`: a file with the name of class 0, 1, ... on each line."""
    root = find_root(source, (), (), WHERE)
    listed = listed_images(root, files, config, classes)
    return build_listed(
        out, root, listed, [*files, *([classes] if classes else [])], config, name=name, progress=progress
    )


def build_listed(
    out: Path,
    root: Path,
    listed: ListedImages,
    files: Sequence[Path],
    config: ListsConfig,
    *,
    name: str = "",
    where: str = WHERE,
    progress: Progress = SILENT,
) -> Manifest:
    """As `build`, from what somebody has read in the files already.

    `where`: the advice for paths that lead to no image of the root.
    """
    key = {"builder": "lists", "version": 1, "lists": digests(files), **key_settings(config, listed)}

    def plan(without: Collection[str]) -> Plan:
        return plan_listed(name or out.resolve().name, listed, config, without, where)

    return build_dataset(out, root, key, plan, damaged=config.damaged, inside=True, progress=progress)


def key_settings(config: ListsConfig, listed: ListedImages) -> dict[str, Any]:
    """What a dataset records of its settings; its group is None, as in datasets from before, where lists have none."""
    settings = config.model_dump(mode="json", exclude={"group"})
    return {"config": settings, "group": None if listed.groups is None else config.group}


def listed_images(
    root: Path, files: Sequence[Path], config: ListsConfig, classes: Path | None = None, where: str = WHERE
) -> ListedImages:
    """What the lists say, paths relative to `root`. Reads no image."""
    relative = relative_to(root)
    lines: list[ListedImage] = []
    places: dict[str, tuple[int, Path]] = {}
    for file in files:
        for number, line in read_lines(file, config, relative, where):
            lines.append(line)
            first, its_file = places.setdefault(line.path, (number, file))
            if (first, its_file) != (number, file):
                rule, got = (
                    "an image that is listed once",
                    f"'{line.path}', which line {first} of '{its_file}' names already",
                )
                raise DataError(expected(f"line {number} of '{file}'", rule, got, "Delete one of the lines."))
    if not lines:
        got = ", ".join(map(str, files)) or "no file"
        raise DataError(expected("the lists", "a line for each image", got, "Name files that are not empty."))
    _require_all_or_none("domain", [line.domain for line in lines])
    if _require_all_or_none("split", [line.split for line in lines]):
        config.refuse_drawing("the lists give the splits")
    names, order = _named([composed(line.label) for line in lines], classes)
    splits = [split_named(line.split) for line in lines if line.split is not None] or None
    domains = [composed(line.domain or ONE_DOMAIN) for line in lines]
    groups = [line.group or "" for line in lines] if any(line.group for line in lines) else None
    notes = [note for file in files for note in ignored_columns(file, config)]
    return ListedImages([line.path for line in lines], names, domains, splits, groups, order, notes)


def plan_listed(
    name: str, listed: ListedImages, config: ListsConfig, without: Collection[str] = (), where: str = WHERE
) -> Plan:
    """The plan of the images that lists name, without some of them."""
    paths, classes, domains, splits, groups, order, notes = listed
    where = f"Correct or delete their lines. {where}"
    plan = make_plan(name, paths, classes, domains, splits, config, without, order, where, groups)
    plan.notes += notes
    return plan


def _require_all_or_none(what: str, values: Sequence[str | None]) -> bool:
    """Whether the lists say this about their images; raises if they say it only about some."""
    given = sum(value is not None for value in values)
    if 0 < given < len(values):
        got, remedy = f"one for {given} of {len(values)}", "Complete the lists."
        raise DataError(expected("the lists", f"with a {what} for each image or for none", got, remedy))
    return given > 0


def _named(labels: list[str], classes: Path | None) -> tuple[list[str], tuple[str, ...]]:
    """The class name of each line, and the names in order: numerical if all are numbers, else alphabetical."""
    distinct = set(labels)
    numbers = all(map(_is_number, distinct))
    if classes is None:
        order = sorted(distinct, key=int) if numbers else sorted(distinct)
        return labels, tuple(order)
    names = [composed(name) for name in text_lines(classes)]
    wrong = sorted(label for label in distinct if not _is_number(label) or int(label) >= len(names))
    if wrong:
        rule = f"numbers from 0 to {len(names) - 1}, as '{classes}' has {len(names)} names"
        raise DataError(expected("the labels", rule, ", ".join(wrong[:5]), "Correct the file of names or the lists."))
    return [names[int(label)] for label in labels], tuple(names)


def _is_number(label: str) -> bool:
    return label.isdecimal() and len(label) < 19
