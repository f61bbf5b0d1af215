"""`ltds data check`: look at images before training on them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.screen import SCREEN


def check(
    data: Annotated[
        str,
        typer.Argument(
            help="Folder of images sorted as domain/class/*, CSV file with the columns path, class and domain, dataset "
            "folder, or 'bestiary'."
        ),
    ],
    json_file: Annotated[
        str, typer.Option("--json", help="File for everything that was found, as JSON; '-' for standard output.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="HTML page to write.")] = None,
) -> None:
    """Look at your images: imbalance, missing pairs, near-duplicates, damaged files, shift between domains.

    Example: ltds data check photos --out check.html

    Ends with a verdict: how to start, what to collect. Nothing else is written. Exit code: 0 fine, 1 problems found.
    """
    from ltds.core.errors import ConfigError
    from ltds.core.files import has_mark, refuse_to_replace, write_json, write_text
    from ltds.planning.check.page import MARKS, html_page
    from ltds.planning.check.report import is_stored_check
    from ltds.planning.check.run import check as check_data
    from ltds.planning.check.text import check_lines

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(
            f"Expected argument 'out' to be a page that ends in .html, but got '{out}'. Choose another name.",
            arguments=["out=check.html"],
        )
    if out is not None:
        refuse_to_replace(out, "a page of ltds data check", has_mark(*MARKS))
    if json_file not in ("", "-"):
        refuse_to_replace(Path(json_file), "what ltds data check has found", is_stored_check)
    found = check_data(data, progress=SCREEN)
    if json_file == "-":
        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        for line in check_lines(found):
            SCREEN.result(line)
    if json_file not in ("", "-"):
        write_json(Path(json_file), found.to_dict())
        SCREEN.say(f"Wrote {json_file}")
    if out is not None:
        write_text(out, html_page(found))
        SCREEN.say(f"Wrote {out}")
    if not found.splits["train"]:
        SCREEN.say(f"To evaluate a trained model on this data: ltds evaluate RUN --data {shlex.quote(data)}")
    elif found.training is None:
        SCREEN.say("These images cannot be trained on yet: repair the problems first.")
    else:
        options = [f"--{name.replace('_', '-')} {shlex.quote(value)}" for name, value in found.training.items()]
        SCREEN.say(f"To train: ltds train {' '.join([shlex.quote(data), *options])}")
    if found.problems:
        raise typer.Exit(1)
