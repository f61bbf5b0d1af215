"""make mutants: put small faults into the code, one at a time, and list those that no test notices.

Works on a copy of the last commit in a temporary folder. Faults come in a random order that depends on the seed alone.
What results/mutants.json already knows about a fault is kept while its source file is unchanged, except that survivors
are tried again: after new tests, run the same command. Stop it whenever you like; the next run goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from faults import Fault, find_faults
from which_tests import ROOMS, WHOLE_RUNS, noticing_tests

ROOT = Path(__file__).resolve().parents[2]
PRELOADED = (
    "numpy",
    "torch",
    "torch.nn.functional",
    "pydantic",
    "PIL.Image",
    "safetensors.torch",
    "pytest",
    "hypothesis",
    "sympy",
    "torch._dynamo",
    "anyio.pytest_plugin",
    "pydantic.json_schema",
    "scipy.stats",
    "sklearn.metrics",
    "sklearn.neighbors",
)
CPU_SECONDS = 120  # processor time of one test; what takes longer, and does not without the fault, counts as noticed
TOGETHER = 5  # faults after which the tests that noticed them are run without a fault, all at once


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=150, help="faults to try, the same number in each room")
    parser.add_argument("--seed", type=int, default=0, help="seed of the order in which faults are tried")
    parser.add_argument("--rooms", default=",".join(ROOMS), help="packages of src/ltds, e.g. losses,stats")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "mutants.json", help="file of the outcome")
    parser.add_argument("--survivors", action="store_true", help="only try those again that survived before")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped. The same command goes on."))  # removes the copy
    record: dict[str, Any] = json.loads(options.out.read_text()) if options.out.is_file() else {}
    known = {row["fault"]: row for row in record.get("faults", [])}
    with tempfile.TemporaryDirectory(prefix="ltds-mutants-") as folder:
        tree, commit = copy_of_head(Path(folder))
        check(tree)
        sample = choose(tree, options.rooms.split(","), options.count, options.seed)
        bench = Bench(tree)
        rows = {fault.key: known[fault.key] for fault in sample if fault.key in known}
        if options.survivors:
            sample = [fault for fault in sample if fault.key in known and not known[fault.key]["noticed_by"]]
        sample.sort(key=lambda fault: fault.key in known and not known[fault.key]["noticed_by"])  # new ones first
        digests = {
            name: hashlib.sha256((tree / name).read_bytes()).hexdigest()[:12] for name in {f.file for f in sample}
        }
        todo = [fault for fault in sample if _is_open(known.get(fault.key), digests[fault.file])]
        excused = equivalent()  # not tried: they would survive, after all tests there are
        for fault in (fault for fault in todo if fault.key in excused):
            rows[fault.key] = _row(fault, digests[fault.file], "")
        todo = [fault for fault in todo if fault.key not in excused]
        for number, (fault, noticed_by) in enumerate(bench.try_all(todo), 1):
            print(f"{number}/{len(todo)} {noticed_by or 'SURVIVED'}  {fault.key}", flush=True)
            rows[fault.key] = _row(fault, digests[fault.file], noticed_by)
            write(options.out, commit, options.seed, rows)
        write(options.out, commit, options.seed, rows)
    print(summary(json.loads(options.out.read_text())))


def _row(fault: Fault, digest: str, noticed_by: str) -> dict[str, Any]:
    return {"fault": fault.key, "line": fault.line, "source": digest, "noticed_by": noticed_by}


def _is_open(row: dict[str, Any] | None, digest: str) -> bool:
    """Whether a fault is to be tried: it never was, or it survived, or its file has changed since."""
    return not row or not row["noticed_by"] or bool(row["source"] != digest)


def check(tree: Path) -> None:
    """Refuse a commit whose tests cannot even be collected: every fault would seem to be noticed."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "tests/unit/losses"]
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"Expected the tests of the last commit to be collected, but got:\n{done.stdout}{done.stderr}")


def choose(tree: Path, rooms: list[str], count: int, seed: int) -> list[Fault]:
    """The first faults of each room in its random order, so many that they are `count` together, rooms taking turns."""
    share = -(-count // len(rooms))
    queues = []
    for room in rooms:
        files = sorted((tree / "src/ltds" / room).rglob("*.py"))
        names = [(file, str(file.relative_to(tree))) for file in files if "standalone" not in file.parts]
        faults = [fault for file, name in names for fault in find_faults(name, file.read_text())]
        queues.append(sorted(faults, key=lambda fault: fault.rank(seed))[:share])
    turns = [fault for place in range(share) for queue in queues for fault in queue[place : place + 1]]
    return turns[:count]


class Bench:
    """Runs tests in forked processes, so that torch is imported once."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.sound: set[str] = set()  # tests that pass without a fault, as far as they were tried
        self.broken: set[str] = set()  # tests that fail without any fault
        sys.dont_write_bytecode = False  # in the copy: a fault then needs to compile its own file only
        sys.path[:0] = [str(tree / "src"), str(tree / "tests"), str(tree / "tests/reference")]
        os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(tree / "src")}
        os.chdir(tree)
        for name in PRELOADED:
            importlib.import_module(name)

    def try_all(self, faults: list[Fault]) -> Iterator[tuple[Fault, str]]:
        """Each fault with the first test that fails, or hangs, with it and not without it; "" if there is none."""
        waiting = list(faults)
        while waiting:
            tried = {}
            for fault in waiting[:TOGETHER]:
                with self._put_in(fault):
                    tried[fault] = self._first_failure(noticing_tests(self.tree, fault.file))
            self._prove([failed for failed in tried.values() if "::" in failed])
            waiting = [fault for fault, failed in tried.items() if failed in self.broken] + waiting[TOGETHER:]
            yield from ((fault, failed) for fault, failed in tried.items() if failed not in self.broken)

    def _prove(self, tests: list[str]) -> None:
        """Find those among these tests that fail without any fault."""
        new = [test for test in dict.fromkeys(tests) if test not in self.sound]
        if new and self._first_failure(new):
            self.broken.update(test for test in new if self._first_failure([test]))
        self.sound.update(test for test in new if test not in self.broken)

    @contextmanager
    def _put_in(self, fault: Fault) -> Iterator[None]:
        file = self.tree / fault.file
        source = file.read_text()
        compiled = Path(importlib.util.cache_from_source(str(file)))
        compiled.unlink(missing_ok=True)  # it is told from a changed source by size and second only
        file.write_text(fault.applied(source))
        try:
            yield
        finally:
            file.write_text(source)
            compiled.unlink(missing_ok=True)

    def _first_failure(self, tests: list[str]) -> str:
        """The test that failed, or ended the process by a signal (a limit of time is one); the file that could not be
        imported; or ""."""
        report, running = self.tree / "first-failure.txt", self.tree / "running.txt"
        report.write_text("")
        running.write_text("")
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._run_tests(tests, report, running)
        status = _wait(pid)
        if os.WIFSIGNALED(status):
            return running.read_text() or f"signal {os.WTERMSIG(status)}"
        return report.read_text()

    def _run_tests(self, tests: list[str], report: Path, running: Path) -> None:
        """In the forked process: run until the first failure, write its name, leave."""
        os.setpgid(0, 0)
        _limit_time()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        import pytest

        class FirstFailure:
            def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
                """Each test with its first parameters, then each with its second: that notices most faults soon."""
                seen = Counter[str]()
                turn = {}
                for item in items:
                    name = item.nodeid.partition("[")[0]
                    slow = name.startswith(WHOLE_RUNS), name.startswith("tests/properties/")
                    turn[item] = (*slow, seen[name])
                    seen[name] += 1
                items.sort(key=turn.__getitem__)

            def pytest_runtest_logstart(self, nodeid: str) -> None:
                running.write_text(nodeid)
                _limit_time()

            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                self.note(report.nodeid, report.failed)

            def pytest_collectreport(self, report: pytest.CollectReport) -> None:
                self.note(report.nodeid, report.failed)

            def note(self, name: str, failed: bool, file: Path = report) -> None:
                if failed and not file.read_text():
                    file.write_text(name or "collection")

        skipped = [f"--deselect={name}" for name in self.broken]
        code = pytest.main(
            ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *skipped, *tests], [FirstFailure()]
        )
        if code not in (0, 1, 5) and not report.read_text():
            report.write_text(f"pytest ended with {code}")
        os._exit(0)


def _limit_time() -> None:
    """Let a signal end this process if it takes too long from now on."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + CPU_SECONDS, most))
    signal.alarm(10 * CPU_SECONDS)  # a test that waits takes no processor time


def _wait(pid: int) -> int:
    """The status of a child when it ends; its own children end with it."""
    try:
        _, status = os.waitpid(pid, 0)
        return status
    finally:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def copy_of_head(folder: Path) -> tuple[Path, str]:
    """The last commit, unpacked; and its name. Worked examples beside the repository are linked beside the copy."""
    tree = folder / "tree"
    tree.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=tree, input=archive, check=True)
    if (ROOT.parent / "shared").is_dir():
        (folder / "shared").symlink_to(ROOT.parent / "shared")
    name = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    return tree, name.stdout.strip()


def equivalent() -> dict[str, str]:
    """Faults that change nothing that anyone could notice, with the reason."""
    return dict(tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text()))


def write(file: Path, commit: str, seed: int, rows: dict[str, dict[str, Any]]) -> None:
    same = equivalent()
    survivors = [key for key, row in rows.items() if not row["noticed_by"]]
    real = [key for key in survivors if key not in same]
    counted = len(rows) - (len(survivors) - len(real))
    record = {
        "command": "make mutants",
        "commit": commit,
        "seed": seed,
        "n": len(rows),
        "equivalent": len(survivors) - len(real),
        "caught": counted - len(real),
        "share": round((counted - len(real)) / counted, 4) if counted else None,
        "rooms": dict(Counter(key.split("/")[2] for key in rows)),
        "survivors": real,
        "faults": list(rows.values()),
    }
    new = file.with_suffix(".part")
    new.write_text(json.dumps(record, indent=1) + "\n")
    new.replace(file)


def summary(record: dict[str, Any]) -> str:
    counted = record["n"] - record["equivalent"]
    share = 100 * record["caught"] / counted if counted else 0
    lines = [f"{record['caught']} of {counted} faults noticed ({share:.1f} %), {record['equivalent']} change nothing."]
    return "\n".join([*lines, *(f"  survived: {fault}" for fault in record["survivors"])])


if __name__ == "__main__":
    main()
