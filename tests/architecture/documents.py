"""The code blocks and commands of README.md and docs/, for the tests that check them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from repository import PAGES, ROOT

GENERATED = ROOT / "docs" / "reference"
SHELL = ("", "sh", "shell", "bash", "console", "text")


@dataclass(frozen=True)
class Block:
    """A block of code: its language ("" for an indented one), its text and where it starts."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.type in ("fence", "code_block"):
            yield Block(str(page.relative_to(ROOT)), (token.map or [0])[0] + 1, token.info.strip(), token.content)


BLOCKS = [block for page in PAGES for block in blocks(page)]


@dataclass(frozen=True)
class CommandLine:
    """An `ltds` command of a page, as words. `whole`: it stands in a block, so it must be complete."""

    where: str
    words: tuple[str, ...]
    whole: bool

    def __str__(self) -> str:
        return f"{self.where}: {shlex.join(self.words)}"


def commands_of(page: Path) -> Iterator[CommandLine]:
    """Commands in blocks, continued lines joined; and those in running text, between backticks."""
    for block in blocks(page):
        if block.language in SHELL:
            for line in block.text.replace("\\\n", " ").splitlines():
                for words in commands_in(line):
                    yield CommandLine(str(block), words, whole=True)
    text = re.sub(r"(?s)```.*?```", "", page.read_text(encoding="utf-8"))
    for code in re.findall(r"`(ltds [^`]*)`", text):
        for words in commands_in(" ".join(code.split())):
            yield CommandLine(str(page.relative_to(ROOT)), words, whole=False)


def commands_in(line: str) -> Iterator[tuple[str, ...]]:
    """The words after `ltds` of each command in a line of shell; lines of output do not start like one."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # an apostrophe in a line of output
        return
    parts: list[list[str]] = [[]]
    for word in words:
        if word in ("|", "&&", ";"):
            parts.append([])
        else:
            parts[-1].append(word)
    for part in parts:
        if part[:1] == ["ltds"] and len(part) > 1:
            yield tuple(part[1:])


COMMANDS = [command for page in PAGES if page.parent != GENERATED for command in commands_of(page)]
