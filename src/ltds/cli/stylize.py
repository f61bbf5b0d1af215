"""`ltds data stylize`: redraw a folder of images, or the images that a dataset lists, in other styles."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from ltds.cli.screen import SCREEN
from ltds.core.errors import ConfigError, DataError, expected
from ltds.core.processor import cores

if TYPE_CHECKING:
    from ltds.data.styles.make import StyleJob

MOST_ON_GPU = 4  # processes that share a GPU: some decode while one computes


def stylize(
    source: Annotated[Path, typer.Argument(help="A dataset built with styles, or a folder of images.")],
    style: Annotated[
        str | None, typer.Option(help="hayao, vangogh, classical:oil, ... (default for a dataset: all that it lists).")
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(help="FILE, or STYLE=FILE if there are several styles. May be repeated."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the new images; leave it out for a dataset.")] = None,
    size: Annotated[int, typer.Option(help="Shorter side in pixels; smaller images keep their size.", min=8)] = 256,
    jobs: Annotated[int, typer.Option(help="Processes; 0 means one for each core, or 4 on a GPU.", min=0)] = 0,
    batch_size: Annotated[int, typer.Option(help="Images of equal size that are redrawn together.", min=1)] = 8,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    skip_broken: Annotated[bool, typer.Option(help="Report images that cannot be read, and leave them out.")] = False,
) -> None:
    """Redraw images in another style. Images that exist already are not made again.

    Example: ltds data stylize photos --style classical:cartoon --out photos-cartoon
    """
    from ltds.data.styles.make import StyleOptions, is_complete, load_styles, make_images
    from ltds.data.styles.record import claim_dataset, claim_folder
    from ltds.engine.device import choose_device

    style_jobs = _of_folder(source, style, out) if out is not None else _of_dataset(source, style)
    styles = sorted({job.style for job in style_jobs})
    missing = sorted({job.style for job in style_jobs if not is_complete(job.target)})
    options = StyleOptions(_weights(styles, missing, weights or []), size, str(choose_device(device)), batch_size)
    most = cores() if options.device == "cpu" else min(cores(), MOST_ON_GPU)
    load_styles(missing, options)
    if out is None:
        claim_dataset(source, style_jobs, options)
    else:
        claim_folder(out, style_jobs, options, source)
    problems = make_images(style_jobs, options, workers=jobs or most, progress=SCREEN)
    _report(problems, len(style_jobs), skip_broken=skip_broken, dataset=out is None)


def _of_dataset(root: Path, style: str | None) -> list[StyleJob]:
    """The images that the dataset's stylize.csv lists, all of them or those of one style."""
    from ltds.data.stylelist import read_style_list
    from ltds.data.styles.make import StyleJob

    images = list(read_style_list(root))
    if not images:
        remedy = "Build it with styles (ltds data build awa2-lts); or give --style and --out for a folder of images."
        raise DataError(expected(f"'{root}'", "a dataset with a stylize.csv", "none there", remedy))
    known = sorted({image.style for image in images})
    if style is not None and style not in known:
        remedy = f"Choices: {', '.join(known)}. Leave --style out to make them all."
        raise ConfigError(expected("--style", f"one that '{root}' needs", f"'{style}'", remedy))
    styles: dict[str, str] = {}
    for image in images:
        if styles.setdefault(image.path, image.style) != image.style:
            got, remedy = f"{styles[image.path]} and {image.style}", "Build the dataset again."
            raise DataError(expected(f"'{image.path}' in '{root}'", "of one style", got, remedy))
        if PurePosixPath(image.path).is_absolute() or ".." in PurePosixPath(image.path).parts:
            remedy = "A list from elsewhere must not write outside of the dataset: correct that line of stylize.csv."
            raise DataError(expected(f"'{image.path}'", f"a path inside '{root}'", "one outside", remedy))
    jobs = [StyleJob(root / i.path, root / i.source, i.style) for i in images if style is None or i.style == style]
    _require_inside(root, jobs)
    return jobs


def _require_inside(folder: Path, jobs: list[StyleJob]) -> None:
    """Refuse to write through a link that leads out of the folder."""
    end = folder.resolve()
    for target in {job.target.parent for job in jobs}:
        if not target.resolve().is_relative_to(end):
            remedy = "Images are not written through links to elsewhere: replace the link by a folder."
            raise DataError(expected(f"'{target}'", f"a folder inside '{folder}'", f"'{target.resolve()}'", remedy))
    linked = next((job.target for job in jobs if job.target.is_symlink()), None)
    if linked is not None:
        raise DataError(expected(f"'{linked}'", "an image, or nothing yet", "a link", "Delete the link."))


def _of_folder(source: Path, style: str | None, out: Path) -> list[StyleJob]:
    """Every image below the folder; the new image has the same relative path below `out`."""
    from ltds.core.registry import find
    from ltds.data.image_files import images_below
    from ltds.data.styles import STYLES
    from ltds.data.styles.make import StyleJob

    if style is None:
        raise ConfigError(expected("--style", "given for a folder", "none", f"Choices: {', '.join(sorted(STYLES))}."))
    find("style", style, STYLES)
    if not source.is_dir():
        raise DataError(expected(f"'{source}'", "a folder of images", "no folder", "Check the path."))
    if out.resolve().is_relative_to(source.resolve()):
        remedy = "Choose another folder with --out: the next run would redraw the new images too."
        raise ConfigError(expected(f"'{out}'", f"outside of '{source}'", "a folder in it", remedy))
    jobs = [StyleJob(out / name, source / name, style) for name in images_below(source)]
    if not jobs:
        raise DataError(expected(f"'{source}'", "a folder with images", "no image below it", "Check the path."))
    _require_inside(out, jobs)
    return jobs


def _weights(styles: list[str], missing: list[str], given: list[str]) -> dict[str, Path]:
    """The weights of each style. The error names all styles that need weights but have none."""
    from ltds.core.registry import find
    from ltds.data.styles import STYLES, Learned

    learned = {name: kind.origin for name in styles if isinstance(kind := find("style", name, STYLES), Learned)}
    files: dict[str, Path] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not (equals and name in STYLES):
            name, file = next(iter(learned)) if len(learned) == 1 else "", text
        if name not in learned:
            remedy = f"Write --weights STYLE=FILE. Styles with weights here: {', '.join(learned) or 'none'}."
            raise ConfigError(expected("--weights", "for a style that is made and needs them", f"'{text}'", remedy))
        files[name] = Path(file)
    lacking = [name for name in missing if name in learned and name not in files]
    if lacking:
        options = " ".join(f"--weights {name}=FILE" for name in lacking)
        origins = "; ".join(dict.fromkeys(learned[name] for name in lacking))
        others = " Or make the others first, style by style, with --style." if len(missing) > len(lacking) else ""
        remedy = f"Add {options}. The files come from {origins}.{others}"
        raise ConfigError(expected(f"weights for {', '.join(lacking)}", "given", "none", remedy))
    return files


def _report(problems: dict[str, str], total: int, *, skip_broken: bool, dataset: bool) -> None:
    from ltds.data.manifest_checks import bullet_list

    lines = [f"'{file}': {problem}" for file, problem in problems.items()]
    listing = bullet_list(f"{len(problems)} of {total} images cannot be used", lines)
    if problems and not skip_broken:
        remedy = "Copy them again from their source and run this again; or leave them out with --skip-broken."
        raise DataError(f"{listing}\nAll others are made. {remedy}")
    if problems:
        SCREEN.say(listing)
        if dataset:
            SCREEN.say("The manifest still lists them: build the dataset again with --set damaged=leave-out.")
    SCREEN.say(f"{total - len(problems)} stylised images are there")
