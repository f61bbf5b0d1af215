"""Run every command of the documentation once, in a folder that has what the pages assume.

    python benchmarks/run_docs.py --work /tmp/docs --record results/doc_commands.json    # all pages
    python benchmarks/run_docs.py --work /tmp/docs --pages own-data.md                   # one

It is the commands that are tried, not the methods: data are drawn (stand_ins.py), training is cut to a few steps,
budgets to 30 seconds, grids to two methods. A test (test_doc_commands.py) compares the record with the pages.
Exit code 1 if a command failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "architecture"))
import torch  # noqa: E402
from documents import GENERATED, CommandLine, blocks, commands_of  # noqa: E402
from repository import PAGES  # noqa: E402

import stand_ins  # noqa: E402
from ltds.core.files import write_json  # noqa: E402
from ltds.engine.environment import describe_environment  # noqa: E402

LTDS = str(Path(sys.executable).parent / "ltds")
SHORT = ["--set", "schedule.epochs=1", "--set", "schedule.steps_per_epoch=2"]
PUBLISHED = ("configs/paper", "data/pacs-odg-")
SMALL_BATCHES = ["--set", "data.size=64", "--set", "data.batch_size=4"]
SMALL_ZOO = [w for pair in ("n_max=12", "n_min=3", "val_per_class=3", "test_per_class=5") for w in ("--set", pair)]
SECONDS_OF_SERVING = 15
PHOTOS = {  # domains of the photos on pages that name others, or need more
    "semantics.md": ("north", "south", "wax"),
    "which-method.md": ("north", "south", "east", "night"),
}


def prepare(folder: Path, page: str) -> None:
    """The files that the commands of a page assume."""
    folder.mkdir(parents=True, exist_ok=True)
    if page in ("styles.md", "datasets.md"):
        stand_ins.photos_by_class(folder)
        stand_ins.weights_of_styles(folder)
    else:
        stand_ins.photos(folder, PHOTOS.get(page, ("north", "south", "night")))
        stand_ins.scans(folder)
    if page in ("datasets.md", "own-data.md", "backbones.md"):
        stand_ins.pacs(folder)
    if page in ("datasets.md", "benchmarks.md"):
        stand_ins.awa2(folder)
    if page == "datasets.md":
        stand_ins.imagenet(folder)
    if page == "extending.md":  # whose blocks of Python are the parts of one file
        parts = [block.text for block in blocks(ROOT / "docs" / page) if block.language == "python"]
        (folder / "mine.py").write_text("\n\n".join(parts))


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "LTDS_DATA": "data", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder)}


def call(folder: Path, *words: str) -> None:
    """A command that a page takes as done."""
    subprocess.run([LTDS, "-q", *words], cwd=folder, check=True, env=environment(folder))


def build(folder: Path, page: str) -> None:
    """The datasets and runs that a page takes as given."""
    if page == "semantics.md":
        call(folder, "data", "build", "folder", "--source", "photos", "--out", "D")
    if page == "backbones.md":
        words = ["--source", "PACS", "--splits", "lists", "--order", "PAC-S"]
        call(folder, "data", "build", "pacs-odg", *words, "--out", "data/pacs-odg")
        call(folder, "data", "embed", "data/pacs-odg", "--with", "minilm")
    if page == "benchmarks.md":
        styles = ["--set", 'styles=["classical:oil", "classical:pencil"]']
        words = ["--source", "Animals_with_Attributes2", "--out", "data/awa2-lts"]
        call(folder, "data", "build", "awa2-lts", *words, *SMALL_ZOO, *styles)
        call(folder, "data", "stylize", "data/awa2-lts")
    if page == "use-a-model.md":
        for name in ("first", "photos"):
            call(folder, "train", "photos", "--held-out", "night", "--budget", "20s", "--out", f"runs/{name}")


def shortened(words: list[str]) -> list[str]:
    """The command with little to train."""
    if "--budget" in words:
        words[words.index("--budget") + 1] = "30s"
        return words
    if words[0] in ("train", "benchmark", "demo") and "--resume" not in words and "--status" not in words:
        if "--epochs" in words:
            at = words.index("--epochs")
            del words[at : at + 2]
        if words[0] == "benchmark" and "--methods" not in words:
            words += ["--methods", "agg,ltds"]
        if "--seeds" in words:
            words[words.index("--seeds") + 1] = "0"
        elif words[0] == "benchmark":
            words += ["--seeds", "0"]
        return [*words, *SHORT, *(SMALL_BATCHES if "".join(words[1:2]).startswith(PUBLISHED) else [])]
    if words[:3] == ["data", "build", "awa2-lts"]:
        return [*words, *SMALL_ZOO]
    return words


def run(command: CommandLine, folder: Path) -> tuple[str, str]:
    """("ok" | "failed", how long it took or what it said)."""
    words = shortened(
        [w for word in command.words for w in (sorted(map(str, folder.glob(word))) if "*" in word else [word])]
    )
    stdin = "\n".join(map(str, sorted((folder / "new").glob("*")))) if "-" in words else ""
    started = time.monotonic()
    try:
        done = subprocess.run(
            [LTDS, *words],
            cwd=folder,
            env=environment(folder),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS_OF_SERVING if words[0] == "serve" else 900,
        )
    except subprocess.TimeoutExpired:
        return ("ok", "served until it was stopped") if words[0] == "serve" else ("failed", "15 minutes")
    seconds = time.monotonic() - started
    # 1: it says that images have problems, unless it is the exit code of a fault.
    found_problems = words[:2] == ["data", "check"] and done.returncode == 1 and "Traceback" not in done.stderr
    if done.returncode and not found_problems:
        return "failed", f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}"
    return "ok", f"{seconds:.0f} s"


def save(file: Path, page: str, outcomes: list[dict[str, str]]) -> None:
    """Add a page's outcomes to the record; a page that has lost its commands leaves it."""
    pages = json.loads(file.read_text(encoding="utf-8"))["pages"] if file.exists() else {}
    commit = describe_environment(torch.device("cpu"))["commit"]
    pages |= {page: {"commit": commit, "commands": outcomes}}
    pages = {name: kept for name, kept in sorted(pages.items()) if (ROOT / name).exists() and kept["commands"]}
    what = "Every command of README.md and the pages of docs, run once: shortened, and on small drawn data"
    write_json(file, {"what": what, "command": "python benchmarks/run_docs.py", "pages": pages})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder to work in")
    parser.add_argument("--pages", nargs="*", help="names of pages (default: all with commands)")
    parser.add_argument("--record", type=Path, help="file to write the outcomes into; those of other pages in it stay")
    options = parser.parse_args()
    drawn = (options.work / "shared" / "bestiary").resolve()  # once for all pages
    subprocess.run([LTDS, "-q", "data", "build", "bestiary", "--out", str(drawn)], check=True)
    failed = ran = 0
    for page in (page for page in PAGES if page.parent != GENERATED):
        if options.pages and page.name not in options.pages:
            continue
        outcomes = tried(page, (options.work / page.stem).resolve(), drawn)
        if options.record:
            save(options.record, str(page.relative_to(ROOT)), outcomes)
        ran += len(outcomes)
        failed += sum(one["outcome"] != "ok" for one in outcomes)
    print(f"{ran} commands, {failed} failed")
    sys.exit(bool(failed))


def tried(page: Path, folder: Path, drawn: Path) -> list[dict[str, str]]:
    """The commands of a page, each run in a new folder with what the page assumes."""
    commands = [c for c in commands_of(page) if c.whole]
    if not commands:
        return []
    shutil.rmtree(folder, ignore_errors=True)
    prepare(folder, page.name)
    (folder / "data").mkdir(exist_ok=True)
    for name, target in (("configs", ROOT / "configs"), ("data/bestiary", drawn)):
        (folder / name).symlink_to(target)
    build(folder, page.name)
    outcomes = []
    for command in commands:
        outcome, note = run(command, folder)
        outcomes.append({"command": shlex.join(("ltds", *command.words)), "outcome": outcome, "note": note})
        print(f"{outcome:8} {command}  ({note})", flush=True)
    return outcomes


if __name__ == "__main__":
    main()
