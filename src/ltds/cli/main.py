"""The `ltds` command: its subcommands, and what happens when something goes wrong."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

import ltds
from ltds.cli import benchmark, data, demo, evaluate, export, methods, predict, report, train
from ltds.cli.hints import find_command, hint
from ltds.cli.screen import SCREEN
from ltds.core.errors import LtdsError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Image classification when classes are long-tailed, domains shift and some classes were never seen.\n\n"
    "Start with: ltds demo",
)


def _version(value: bool) -> None:
    if value:
        print(f"ltds {ltds.__version__}")
        raise typer.Exit


@app.callback()
def options(
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print results only: no progress, no messages.")] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Print progress also where there is no terminal.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    SCREEN.quiet, SCREEN.verbose = quiet, verbose


app.command("demo")(demo.demo)
app.add_typer(data.app, name="data")
app.command("train")(train.train)
app.command("predict")(predict.predict)
app.command("export")(export.export)
app.command("evaluate")(evaluate.evaluate)
app.command("benchmark")(benchmark.benchmark)
app.command("report")(report.report)
app.command("methods")(methods.methods)


def run() -> None:
    """Exit codes: 0 success; 2 a mistake that the user can correct (a sentence, no traceback); 1 a fault in ltds.

    `predict` and `evaluate` also exit with 1 after they skipped images that could not be read.
    """
    try:
        app()
    except LtdsError as error:
        remedy = hint(error, find_command(typer.main.get_command(app), sys.argv[1:]))
        print(f"ltds: {error}", *filter(None, [remedy]), sep="\n", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(
            f"ltds: Expected to be able to use '{error.filename}', but the system says: {error.strerror}. "
            "Check the path, its permissions and the space left, or name another with --out.",
            file=sys.stderr,
        )
        sys.exit(2)
    except Exception:
        traceback.print_exc()
        print(
            "ltds: this is a fault in ltds, not in your input. Please report it with the lines above.", file=sys.stderr
        )
        sys.exit(1)
