"""The table of a soak: how often each thing was tried, how it ended, and what differed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Tally:
    """One row: what was tried, counts of how it ended, and a line for each difference or fault."""

    name: str
    tries: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    skipped: str = ""

    def add(self, end: str, tries: int = 1) -> None:
        if tries:
            self.tries += tries
            self.ends[end] += tries

    def fault(self, what: str) -> None:
        self.tries += 1
        self.faults.append(what)

    def absorb(self, other: Tally) -> None:
        self.tries += other.tries
        self.ends += other.ends
        self.faults += other.faults
        self.skipped = self.skipped or other.skipped

    @property
    def line(self) -> str:
        ends = ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items()))
        how = f"skipped: {self.skipped}" if self.skipped else ends
        return f"| {self.name} | {self.tries} | {how} | {len(self.faults)} |"


def table(tallies: list[Tally]) -> str:
    head = ["| what | tries | ends | differences and faults |", "|---|---|---|---|"]
    return "\n".join([*head, *(tally.line for tally in tallies)])


class Journal:
    """Finished units by name, one JSON line each, so that an interrupted soak goes on where it stopped."""

    def __init__(self, file: Path | None) -> None:
        self.file, self.done = file, {}
        if file is not None and file.is_file():
            for line in file.read_text().splitlines():
                unit, row = json.loads(line)
                row["ends"] = Counter(row["ends"])
                self.done[unit] = Tally(**row)

    def tries(self, prefix: str) -> int:
        """How often the units whose names begin so have tried so far."""
        return sum(tally.tries for unit, tally in self.done.items() if unit.startswith(prefix))

    def add(self, unit: str, tally: Tally) -> None:
        self.done[unit] = tally
        if self.file is not None:
            with self.file.open("a") as stream:
                stream.write(json.dumps([unit, vars(tally)]) + "\n")
