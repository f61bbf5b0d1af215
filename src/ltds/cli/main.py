"""The `ltds` command: its subcommands, and what happens when something goes wrong."""

from __future__ import annotations

import io
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer

import ltds
from ltds.cli import benchmark, data, demo, doctor, evaluate, export, methods, predict, report, serve, train
from ltds.cli.hints import find_command, hint
from ltds.cli.own_code import say_where, users_frame
from ltds.cli.screen import SCREEN
from ltds.core.errors import LtdsError, LtdsWarning
from ltds.core.processor import prepare_process
from ltds.core.text import inert

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
        bool,
        typer.Option("-v", "--verbose", help="Print progress more often where there is no terminal."),
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
app.command("serve")(serve.serve)
app.command("export")(export.export)
app.command("evaluate")(evaluate.evaluate)
app.command("benchmark")(benchmark.benchmark)
app.command("report")(report.report)
app.command("methods")(methods.methods)
app.command("doctor")(doctor.doctor)


def _prepare_output() -> None:
    """Print what the terminal's encoding lacks as "?" instead of failing, and our warnings as plain sentences."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    show = warnings.showwarning

    def show_sentence(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, LtdsWarning):
            print(inert(f"ltds: {message}"), file=sys.stderr)
        else:
            show(message, category, *rest, **more)

    warnings.showwarning = show_sentence


def _system_error(error: OSError) -> str:
    what = f"to be able to use '{error.filename}'" if error.filename is not None else "the system to do its work"
    remedy = "Check the path, its permissions and the space left, or name another with --out."
    return f"ltds: Expected {what}, but it says: {error.strerror or error}. {remedy}"


def run() -> None:
    """Exit codes: 0 success; 2 a mistake that the user can correct (a sentence, no traceback); 1 a fault in ltds,
    or in a module of the user that it called (with a traceback).

    `predict` and `evaluate` also exit with 1 after they skipped images that could not be read.
    """
    prepare_process()
    _prepare_output()
    try:
        app()
    except LtdsError as error:
        remedy = hint(error, find_command(typer.main.get_command(app), sys.argv[1:]))
        print(*map(inert, filter(None, [f"ltds: {error}", remedy])), sep="\n", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        frame = users_frame(error)
        if isinstance(error, OSError) and frame is None:
            print(inert(_system_error(error)), file=sys.stderr)
            sys.exit(2)
        traceback.print_exc()
        if frame is None:
            fault = "this is a fault in ltds, not in your input. Please report it with the lines above."
        else:
            fault = f"the error is in your code, not in ltds: {say_where(frame, error)}"
        print(inert(f"ltds: {fault}"), file=sys.stderr)
        sys.exit(1)
