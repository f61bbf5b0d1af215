"""`make soak`: much bad luck in a short time. Prints a table, and exits with 1 if anything differed.

python tests/soak/run.py                          # 200 kills and all the rest: four minutes of computing
python tests/soak/run.py --share                  # the part that `make test` runs
python tests/soak/run.py --state soak.jsonl       # remembers what is done; the same command again goes on
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' own modules

import torch

from soak import damage, fuzzing, kills, races
from soak.child import import_what_it_imports
from soak.disk import full_disks
from soak.tally import Journal, Tally, table
from toy import write_dataset

MEMORY = 6 * 2**30  # of each process: a reader that believes a file's lengths shows, and harms nobody else
EACH = 8  # kills of one run, at most: it may come to its end before


@dataclass(frozen=True)
class Amounts:
    """How much of each."""

    kills: int
    flips: int  # of bits in each file
    mutations: int  # of each kind of file
    examples: int  # of hypothesis, for each kind of file
    disks: int
    races: int


WHOLE = Amounts(kills=200, flips=12, mutations=400, examples=100, disks=24, races=20)
SHARE = Amounts(kills=30, flips=2, mutations=25, examples=5, disks=3, races=1)


def scaled(amounts: Amounts, scale: float, kills: int) -> Amounts:
    return Amounts(**{**{name: max(1, round(scale * n)) for name, n in vars(amounts).items()}, "kills": kills})


def units(amounts: Amounts, folder: Path, journal: Journal) -> Iterator[tuple[str, Callable[[], Tally]]]:
    """Everything to do, as (name, work), in small pieces; `journal` knows how many kills there were so far."""
    data = write_dataset(folder / "data")
    import_what_it_imports(partial(damage.make_runs, data, folder / "runs"))
    runs = folder / "runs"
    import_what_it_imports(lambda: damage.load_and_compare(runs / "done", runs / "done", ""))
    turns = ((number, method) for number in itertools.count() for method in kills.methods_by_family())
    for number, method in itertools.islice(turns, amounts.kills):
        if journal.tries("kill ") >= amounts.kills:
            break
        yield f"kill {method} {number}", partial(kills.kill_and_resume, data, folder / "kill", method, EACH, number)
    for name, flip in (("stopped", damage.flip_in_stopped), ("done", damage.flip_in_done)):
        for file in damage.files_of(runs, name):
            yield f"flip {name} {file}", partial(flip, runs, file, amounts.flips, 0)
    for name, reader in fuzzing.readers(data, runs / "done", folder / "fuzz").items():
        yield f"mutate {name}", partial(fuzzing.mutate, reader, name, amounts.mutations)
        yield f"invent {name}", partial(fuzzing.invent, reader, name, amounts.examples)
    (folder / "disk").mkdir()
    yield "disk", partial(full_disks, folder / "disk", amounts.disks)
    for number in range(1, amounts.races + 1):
        yield f"race cache {number}", partial(races.race_for_cache, data, number)
        yield f"race bestiary {number}", partial(races.race_for_bestiary, folder / "bestiary", number)


def soak(amounts: Amounts, state: Path | None = None) -> list[Tally]:
    """The rows of the table."""
    journal, folder = Journal(state), Path(tempfile.mkdtemp(prefix="ltds-soak-"))
    say = partial(print, flush=True)
    fuzzing.warm_up()
    try:
        for unit, work in units(amounts, folder, journal):
            if unit not in journal.done:
                since = _cpu_seconds()
                journal.add(unit, work())
                say(f"{unit}: {journal.done[unit].line} {_cpu_seconds() - since:.1f} s")
                for fault in journal.done[unit].faults:
                    say(f"DIFFERENCE: {fault}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows: dict[str, Tally] = {}
    for found in journal.done.values():  # also of units that an earlier soak finished
        rows.setdefault(found.name, Tally(found.name)).absorb(found)
    return list(rows.values())


def _cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", action="store_true", help="the part that `make test` runs")
    parser.add_argument("--kills", type=int, default=WHOLE.kills, help="SIGKILLs in training")
    parser.add_argument("--scale", type=float, default=1.0, help="everything else times this, such as 0.25")
    parser.add_argument("--state", type=Path, help="file that remembers what is done")
    words = parser.parse_args()
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    amounts = SHARE if words.share else scaled(WHOLE, words.scale, words.kills)
    rows = soak(amounts, words.state)
    print(table(rows))
    return 1 if any(row.faults for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
