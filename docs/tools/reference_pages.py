"""The pages of docs/reference that are written from the code: commands, settings, methods, API.

python docs/tools/reference_pages.py            # or: make docs-data
python docs/tools/reference_pages.py --check    # say which are stale, write nothing
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from command_pages import commands
from setting_pages import settings

import ltds
from ltds.core.files import write_text
from ltds.methods.entry import GROUPS
from ltds.methods.registry import METHODS
from ltds.reporting.paper.tables import RESULTS, averages, rows

OUT = Path(__file__).resolve().parents[1] / "reference"
MADE = "<!-- Written by `make docs-data` from the code: do not edit. -->"
ABOUT_METHODS = """
`ltds methods NAME` prints the same with all settings. *Networks*: how many are trained. *Passes*: how many batches of
one domain go through a network in one step, for K source domains. For `agg` it is K, so passes / K is about the cost
compared with `agg`. [Which method when](../which-method.md) helps to choose."""
ABOUT_API = """
A function for most commands, with the same words. `import ltds` is quick: a name is loaded when it is first used.
`demo`, `doctor`, and `show`, `info`, `stylize` and `embed` of `ltds data` have none.
Read as a file, this page lists the names. The site (`make docs`) also shows their arguments and full texts."""
PACKAGES = {
    "ltds.losses": "The losses of the paper and of the methods that it compares with, as functions of tensors.",
    "ltds.stats": "Prototypes, covariances and distances between domains, computed while a network learns.",
    "ltds.nn": "Networks, and the parts that methods are made of.",
    "ltds.evaluation": "Metrics and significance tests on plain arrays.",
    "ltds.sklearn": "A scikit-learn classifier on feature vectors, with any method (extra `sklearn`).",
}


def methods() -> str:
    """Every method with what it is, costs, comes from, and reached in the paper."""
    lines = ["# Methods", MADE, ABOUT_METHODS]
    for group in GROUPS:
        lines += ["", f"## {group}", "", "| name | what it does | networks | passes | from |", "|---|---|---|---|---|"]
        for name, entry in METHODS.items():
            if entry.group == group:
                cost = [formula.replace("**2", "²").replace("*", "·") for formula in (entry.networks, entry.passes)]
                origin = "; ".join(entry.citations)
                lines.append(
                    f"| [`{name}`](../methods/{entry.page}.md) | {entry.summary} | {' | '.join(cost)} | {origin} |"
                )
    return "\n".join([*lines, "", *_published(), ""])


def _published() -> list[str]:
    """The averages that the paper prints, by table and method."""
    lines = ["## In the paper", "", "Averages as printed, in percent. `ltds methods --paper` has every number.", ""]
    for table, (_, title) in RESULTS.items():
        names = {number.label: number.preset for number in rows(table) if number.preset}
        if not names:
            continue
        metrics = list(dict.fromkeys(metric for values in averages(table).values() for metric in values))
        lines += [f"**Table {table}, {title}**", "", f"| in the paper | method | {' | '.join(metrics)} |"]
        lines.append("|---|---|" + "--:|" * len(metrics))
        for label, preset in names.items():
            values = averages(table)[label]
            cells = (str(values.get(metric, "-")) for metric in metrics)
            lines.append(f"| {label} | `{preset}` | {' | '.join(cells)} |")
        lines.append("")
    return lines


def api() -> str:
    """The public names with their first sentence, then their docstrings, which the site fills in."""
    lines = ["# Python", MADE, ABOUT_API]
    names = [name for name in ltds.__all__ if name != "__version__"]
    functions = [name for name in names if not inspect.isclass(getattr(ltds, name))]
    classes = [name for name in names if name not in functions]
    lines += _listing("Functions", "ltds", functions) + _listing("Types", "ltds", classes)
    for package, sentence in PACKAGES.items():
        lines += _listing(package, package, importlib.import_module(package).__all__, sentence)
    return "\n".join(lines) + "\n"


def _listing(title: str, package: str, names: list[str], sentence: str = "") -> list[str]:
    module = importlib.import_module(package)
    lines = ["", f"## {title}", *filter(None, ["", sentence])]
    lines += ["", "| name | |", "|---|---|"]
    for name in names:
        thing = getattr(module, name)
        words = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
        if isinstance(thing, dict):  # whose own text would be that of Python's dict
            words = f"What can be named in a setting: {', '.join(map(str, thing))}."
        lines.append(f"| `{package}.{name}` | {words.replace('|', chr(92) + '|')} |")
    for name in names:
        lines += ["", f"::: {package}.{name}"]
    return lines


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": lambda: commands(MADE),
    "settings.md": lambda: settings(MADE),
    "methods.md": methods,
    "api.md": api,
}


def stale() -> list[str]:
    """The pages whose files differ from what the code says now."""
    files = {name: OUT / name for name in PAGES}
    return [name for name, file in files.items() if not file.exists() or file.read_text("utf-8") != PAGES[name]()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    found = stale()
    if parser.parse_args().check:
        sys.exit(f"stale: {', '.join(found)}. Run: make docs-data" if found else 0)
    for name in found:
        write_text(OUT / name, PAGES[name]())
        print(f"docs/reference/{name} written")


if __name__ == "__main__":
    main()
