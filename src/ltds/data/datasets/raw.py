"""From somebody's images, in folders or in a list, to a dataset: built once, and again when images come or go."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ltds.core.errors import DataError, expected
from ltds.core.progress import SILENT, Progress
from ltds.core.symbolic_links import ON_A_DISK_WITH_LINKS, NoLinksError
from ltds.core.text import composed
from ltds.data.build.dataset import LEFT_BY_BUILDS
from ltds.data.build.images import damage
from ltds.data.build.source import LINK, digests
from ltds.data.datasets import BUILDERS, folder, lists
from ltds.data.datasets.folder import FolderConfig
from ltds.data.datasets.layout import infer_layout
from ltds.data.datasets.list_files import ListsConfig
from ltds.data.datasets.lists import ListedImages
from ltds.data.datasets.opening import BUILT_IN, data_home, open_dataset, raw_images, require_path
from ltds.data.image_files import images_below
from ltds.data.manifest import Manifest

FEWEST_TEST = 10  # test images of a pair that are never cut


def open_or_build(source: str | Path | Manifest, progress: Progress = SILENT) -> Manifest:
    """The dataset that `source` names, or one built from the folder or list of images that it is.

    It is built in the data home ($LTDS_DATA, or `data`), with a link to the images; images that cannot be decoded are
    left out. A dataset built before is used again if the images are still the same.
    """
    path = _images_or_none(source)
    if path is None:
        return open_dataset(source, progress)
    return _from_list(path, progress) if path.is_file() else _from_folder(path, progress)


class ImageFolder(NamedTuple):
    """A folder of images as it was read: their paths, and the settings that build a dataset from them.

    used: the images that lie deep enough for the layout, folder by folder.
    """

    images: list[str]
    used: list[str]
    config: FolderConfig


def read_folder(source: Path) -> ImageFolder:
    """What the folder holds and how to build a dataset from it: the layout, and a limit on test images.

    The limit makes test images as even over classes as the images allow: a pair with many images gives no more test
    images than the pair in the middle, though at least ten.
    """
    found = list(images_below(source, without_datasets=True))
    images = sorted(found)
    layout = infer_layout(source, images)
    used = [path for path in found if path.count("/") > layout.count("/")]
    config = FolderConfig(layout=layout, deep=True, damaged="leave-out")
    if "split" not in layout.split("/"):
        most = _most_test(*folder.names_by_folder(used, layout), config.test)
        config = config.model_copy(update={"most_test": most})
    return ImageFolder(images, used, config)


def read_listed(file: Path) -> tuple[ListedImages, ListsConfig]:
    """What a list says, and how to build a dataset from it; unless it gives the splits, with `read_folder`'s limit."""
    config = ListsConfig(damaged="leave-out")
    listed = lists.listed_images(file.parent, [file], config, where=lists.BESIDE)
    if listed.splits is None:
        most = _most_test(listed.classes, listed.domains, config.test)
        config = config.model_copy(update={"most_test": most})
    return listed, config


def open_or_preview(source: str | Path | Manifest, progress: Progress = SILENT) -> Manifest:
    """The dataset that `source` names, or the `preview` of one; a class needs no training images."""
    path = _images_or_none(source)
    return open_dataset(source, progress, evaluated_only=True) if path is None else preview(path)


def _images_or_none(source: str | Path | Manifest) -> Path | None:
    """`raw_images`, but raises where there is nothing, and says that images would do as well as a dataset."""
    if isinstance(source, Manifest):
        return None
    require_path(source)
    path = raw_images(source)
    if path is None and str(source) != BUILT_IN and not Path(source).is_dir():
        rule = "a folder of images sorted as domain/class/*, a list of them (.csv), or the folder of a dataset"
        got = "another file" if Path(source).exists() else "nothing there"
        remedy = "Check the path. 'bestiary' is the dataset that comes with ltds."
        raise DataError(expected(f"'{source}'", rule, got, remedy))
    return path


def preview(source: Path, *, without: Collection[str] = ()) -> Manifest:
    """The dataset that would be built from a folder or a list of images, without writing or decoding anything.

    Unlike in a built one, a class needs no training images. `without`: paths of damaged images, which are left out.
    """
    name = dataset_name(source)
    if source.is_file():
        root = source.parent
        plan = lists.plan_listed(name, *read_listed(source), without, lists.BESIDE)
    else:
        root = source
        _, used, config = read_folder(root)
        plan = folder.plan_folder(name, root, config, without, used)
    return Manifest(
        root=root,
        name=name,
        classes=plan.classes,
        domains=plan.domains,
        paths=tuple(path.removeprefix(f"{LINK}/") for path in plan.paths),
        labels=np.array(plan.labels, np.int64),
        domain_ids=np.array(plan.domain_ids, np.int64),
        split_ids=np.array(plan.split_ids, np.int64),
        provenance={"notes": plan.notes},
        whole_held_out=plan.whole_held_out,
        evaluated_only=True,
    )


def dataset_name(source: Path) -> str:
    """The name of the dataset: that of the folder or list, unless a published dataset has it."""
    name = source.stem if source.is_file() else source.resolve().name or "images"
    return f"{name}-images" if name in BUILDERS else name


def _most_test(classes: Sequence[str], domains: Sequence[str], share: float) -> int:
    counts = Counter(zip(classes, domains, strict=True)).values()
    return max(FEWEST_TEST, round(float(np.median(list(counts))) * share))


def _from_folder(source: Path, progress: Progress) -> Manifest:
    images, used, config = read_folder(source)
    settings = config.to_key()

    def is_same(built: Manifest) -> bool:
        left_out = built.provenance.get("left_out", {})
        before = {path.removeprefix(f"{LINK}/") for path in built.paths} | set(left_out)
        linked = (built.root / LINK).resolve() == source.resolve()
        same = built.provenance.get("config") == settings and before == set(used)
        return linked and same and not _needs_rebuilding(built)

    out = _folder_for(source, images, is_same)
    with _writable(out.parent):
        return folder.build_found(out, source, config, used, name=dataset_name(source), progress=progress)


def _from_list(file: Path, progress: Progress) -> Manifest:
    (listed, config), content = read_listed(file), digests([file])
    made_with = {"lists": content, **lists.key_settings(config, listed)}

    def is_same(built: Manifest) -> bool:
        linked = (built.root / LINK).resolve() == file.parent.resolve()
        same = all(built.provenance.get(name) == value for name, value in made_with.items())
        same &= set(map(composed, built.domains)) <= set(listed.domains)  # before, a column "Domain" was not read
        return linked and same and not _needs_rebuilding(built)

    out = _folder_for(file, [*content.values()], is_same)
    with _writable(out.parent):
        name, where = dataset_name(file), lists.BESIDE
        return lists.build_listed(out, file.parent, listed, [file], config, name=name, where=where, progress=progress)


def _folder_for(source: Path, content: Iterable[str], is_same: Callable[[Manifest], bool]) -> Path:
    """Where the dataset goes: data/NAME, or where that is taken by another dataset, data/NAME-<hash of the content>.

    A further number follows if a dataset of the same files lacks images that have been repaired since.
    """
    plain = _home_for(source) / dataset_name(source)
    if _is_usable(plain, source, is_same):
        return plain
    digest = hashlib.sha256("\n".join([str(source.resolve()), *content]).encode(errors="surrogateescape"))
    hashed = plain.with_name(f"{plain.name}-{digest.hexdigest()[:8]}")
    names = chain([hashed], (hashed.with_name(f"{hashed.name}-{number}") for number in count(2)))
    return next(out for out in names if not _is_outdated(out))


def _home_for(source: Path) -> Path:
    """The data home, or if that lies in the folder of the images (often the current one), the folder `data` beside it.

    Datasets never go into a folder that is searched for images: it would hold more with every dataset.
    """
    home = data_home()
    if not home.resolve().is_relative_to(source.resolve()):
        return home
    if "LTDS_DATA" in os.environ:
        rule = f"a folder outside that of the images ('{source}')"
        remedy = "Set it to another folder."
        raise DataError(expected("the environment variable LTDS_DATA", rule, f"'{home}'", remedy))
    return source.resolve().parent / home


def _is_outdated(out: Path) -> bool:
    """Whether a dataset is there that needs rebuilding."""
    try:
        return (out / "manifest.json").is_file() and _needs_rebuilding(Manifest.read(out))
    except DataError:  # the build says what is wrong with it
        return False


def _needs_rebuilding(built: Manifest) -> bool:
    """Whether an image that was left out because it was damaged can be decoded now, or an earlier version erred.

    It kept a domain if all of its images were damaged, and took a name in two encodings for two names.
    """
    if len(np.unique(built.domain_ids)) < len(built.domains):
        return True
    if any(len(set(map(composed, names))) < len(names) for names in (built.classes, built.domains)):
        return True
    return any(damage(built.root / LINK / path) is None for path in built.provenance.get("left_out", {}))


def _is_usable(out: Path, source: Path, is_same: Callable[[Manifest], bool]) -> bool:
    """Whether `out` is free for the dataset, or holds it already."""
    if out.resolve().is_relative_to(source.resolve()):
        return False
    if not (out / "manifest.json").is_file():
        names = {entry.name for entry in out.iterdir()} if out.is_dir() else set()
        return not out.is_file() and not {name for name in names - LEFT_BY_BUILDS if not name.endswith(".part")}
    try:
        return is_same(Manifest.read(out))
    except DataError:  # somebody else's folder, or a damaged dataset: leave it alone
        return False


@contextmanager
def _writable(home: Path) -> Iterator[None]:
    """Turn the system's error about the data home into a sentence."""
    try:
        yield
    except NoLinksError as error:
        remedy = "Set the environment variable LTDS_DATA to a folder on another disk."
        raise DataError(expected(f"'{home}'", ON_A_DISK_WITH_LINKS, error.got, remedy)) from error
    except OSError as error:
        rule = "a folder that can be written to, for the dataset that is built from the images"
        remedy = "Set the environment variable LTDS_DATA to a folder of yours."
        raise DataError(expected(f"'{home}'", rule, f"'{error.strerror}'", remedy)) from error
