"""Run every command of the documentation once, in a folder that has what the pages assume.

    python benchmarks/run_docs.py --work /tmp/docs                       # all pages
    python benchmarks/run_docs.py --work /tmp/docs --pages own-data.md   # one

Training is cut to a few steps, budgets to 30 seconds: it is the commands that are tried, not the methods. Images are
drawn. Commands that need downloads, or hours, are listed at the end with the reason. Exit code 1 if a command failed.
"""

from __future__ import annotations

import argparse
import csv
import os
import shlex
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "architecture"))
import numpy as np  # noqa: E402
from documents import CommandLine, blocks, commands_of  # noqa: E402
from PIL import Image  # noqa: E402

from ltds.bestiary import NAMES, render  # noqa: E402

LTDS = str(Path(sys.executable).parent / "ltds")
SHORT = ["--set", "schedule.epochs=1", "--set", "schedule.steps_per_epoch=2"]
NOT_HERE = {
    "configs/paper": "needs the paper's data",
    "Animals_with_Attributes2": "needs AWA2",
    "awa2-lts": "needs AWA2",
    "ILSVRC2012": "needs ImageNet",
    "pacs": "needs PACS",
    "PACS": "needs PACS",
    ".pth": "needs weights of a style network",
}
WITHOUT_DOMAINS = ("styles.md", "datasets.md")  # there, photos are sorted by class only
BUILT = {"semantics.md": "D", "which-method.md": "data/photos"}  # datasets that pages take as given
SECONDS_OF_SERVING = 15


def draw(folder: Path, domain: int, kind: int, count: int, size: int = 48) -> None:
    """Drawn images of one kind in one style, as if they were photos."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(count):
        Image.fromarray(np.asarray(render(kind, domain, size=size, seed=seed))).save(folder / f"{seed}.jpg")


def prepare(folder: Path, page: str) -> None:
    """The files that the commands of a page assume."""
    kinds = [0, 1, 2, 4]
    if page in WITHOUT_DOMAINS:
        for kind in range(7):
            draw(folder / "photos" / NAMES[kind], 0, kind, 150 - 8 * kind)
    else:
        for domain, name in enumerate(("north", "south", "wax" if page == "semantics.md" else "night")):
            for kind in kinds:
                draw(folder / "photos" / name / NAMES[kind], domain, kind, 24 - 4 * kind)
        draw(folder / "photos" / name / NAMES[7], 2, 7, 8)  # only there: an open class when this domain is held out
    for domain, name in enumerate(("cartoon", "photo")):
        for kind, label in zip((0, 1, 9), (NAMES[0], NAMES[1], "guitar"), strict=True):
            draw(folder / "new_site" / name / label, domain, kind, 5)
    draw(folder / "new", 3, 0, 3)
    _scans(folder)
    if page == "extending.md":  # whose blocks of Python are the parts of one file
        parts = [block.text for block in blocks(ROOT / "docs" / page) if block.language == "python"]
        (folder / "mine.py").write_text("\n\n".join(parts))


def _scans(folder: Path) -> None:
    """Lists of images, and a module that builds a dataset, for the page on one's own data."""
    rows = []
    for domain, hospital in enumerate(("north", "south")):
        for kind in (0, 1):
            draw(folder / "scans" / hospital, domain, kind, 8)
            rows += [(f"{hospital}/{n}.jpg", NAMES[kind], hospital, "train" if n < 5 else "test") for n in range(8)]
    rows = [row for row in rows if row[1] == NAMES[0]] + [
        (path.replace(".jpg", "b.jpg"), *rest) for path, *rest in rows if rest[0] == NAMES[1]
    ]
    for path, *_ in rows:
        target = folder / "scans" / path
        if not target.exists():
            target.write_bytes((folder / "scans" / path.replace("b.jpg", ".jpg")).read_bytes())
    (folder / "images.txt").write_text("".join(f"{path} {label} {domain}\n" for path, label, domain, _ in rows))
    with (folder / "scans.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("file", "diagnosis", "hospital", "fold"), *rows])


def shortened(words: list[str]) -> list[str]:
    """The command with little to train."""
    if "--budget" in words:
        words[words.index("--budget") + 1] = "30s"
        return words
    if words[0] in ("train", "benchmark", "demo") and "--resume" not in words and "--status" not in words:
        if "--epochs" in words:
            at = words.index("--epochs")
            del words[at : at + 2]
        if "--seeds" in words:
            words[words.index("--seeds") + 1] = "0"
        return [*words, *SHORT]
    return words


def run(command: CommandLine, folder: Path, not_made: set[str]) -> tuple[str, str]:
    """("ok" | "failed" | "not run", what to say about it). `not_made`: what commands not run would have made."""
    line = shlex.join(command.words)
    reason = next((why for mark, why in NOT_HERE.items() if mark in line), "")
    if "mypackage" in line or "..." in command.words:
        reason = "a placeholder"
    if "configs/bestiary" in line and "--methods" not in command.words:
        reason = "trains too many runs"
    if missing := next((word for word in command.words if word in not_made), ""):
        reason = f"needs {missing}, whose command was not run"
    if reason:
        not_made.update(out for word, out in pairwise(command.words) if word == "--out")
        return "not run", reason
    words = shortened(
        [w for word in command.words for w in (sorted(map(str, folder.glob(word))) if "*" in word else [word])]
    )
    stdin = "\n".join(map(str, sorted((folder / "new").glob("*")))) if "-" in words else ""
    environment = {**os.environ, "LTDS_DATA": "data", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder)}
    started = time.monotonic()
    try:
        done = subprocess.run(
            [LTDS, *words],
            cwd=folder,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS_OF_SERVING if words[0] == "serve" else 900,
        )
    except subprocess.TimeoutExpired:
        return ("ok", "served until it was stopped") if words[0] == "serve" else ("failed", "15 minutes")
    seconds = time.monotonic() - started
    found_problems = words[:2] == ["data", "check"] and done.returncode == 1  # it says that images have problems
    if done.returncode and not found_problems:
        return "failed", f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}"
    return "ok", f"{seconds:.0f} s"


def models(folder: Path) -> None:
    """The runs that the page on using a model starts with."""
    for name in ("first", "photos"):
        if not (folder / "runs" / name / "DONE").exists():
            words = ["-q", "train", "photos", "--held-out", "night", "--budget", "20s", "--out", f"runs/{name}"]
            subprocess.run([LTDS, *words], cwd=folder, check=True, env={**os.environ, "LTDS_DATA": "data"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder to work in")
    parser.add_argument("--pages", nargs="*", help="names of pages (default: all with commands)")
    options = parser.parse_args()
    drawn = (options.work / "shared" / "bestiary").resolve()  # once for all pages
    subprocess.run([LTDS, "-q", "data", "build", "bestiary", "--out", str(drawn)], check=True)
    outcomes: list[str] = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        commands = [c for c in commands_of(page) if c.whole]
        if not commands or (options.pages and page.name not in options.pages):
            continue
        folder = (options.work / page.stem).resolve()
        prepare(folder, page.name)
        (folder / "data").mkdir(exist_ok=True)
        for name, target in (("configs", ROOT / "configs"), ("data/bestiary", drawn)):
            if not (folder / name).exists():
                (folder / name).symlink_to(target)
        if page.name == "use-a-model.md":
            models(folder)
        if page.name in BUILT:
            words = ["-q", "data", "build", "folder", "--source", "photos", "--out", BUILT[page.name]]
            subprocess.run([LTDS, *words], cwd=folder, check=True)
        not_made: set[str] = set()
        for command in commands:
            outcome, why = run(command, folder, not_made)
            outcomes.append(outcome)
            print(f"{outcome:8} {command}  ({why})", flush=True)
    counts = {name: outcomes.count(name) for name in ("ok", "failed", "not run")}
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    sys.exit(bool(counts["failed"]))


if __name__ == "__main__":
    main()
