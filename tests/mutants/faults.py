"""Small deliberate faults in Python source: each is one change of one expression or statement."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
}
OTHER_NAME = {
    "mean": "sum",
    "sum": "mean",
    "min": "max",
    "max": "min",
    "argmax": "argmin",
    "argmin": "argmax",
    "any": "all",
    "all": "any",
    "train": "eval",
    "eval": "train",
    "no_grad": "enable_grad",
    "inference_mode": "enable_grad",
    "floor": "ceil",
    "ceil": "floor",
    "log_softmax": "softmax",
}
LEFT_OUT = {"detach", "clamp", "clamp_min", "clamp_max", "clone", "abs", "square", "sqrt", "normalize", "round", "sort"}
SPARED_KEYWORDS = {"strict", "foreach", "description", "match", "indent", "sort_keys", "ensure_ascii"}


@dataclass(frozen=True)
class Fault:
    """One change of a source file: characters start..end become `new`.

    `place` is the function that it is in, `text` the line. `key` names the fault without a line number, so that it
    stays the same while other parts of the file change; `nth` tells equal ones apart.
    """

    file: str
    line: int
    start: int
    end: int
    place: str
    text: str
    old: str
    new: str
    nth: int

    @property
    def key(self) -> str:
        change = f"{_short(self.old)} -> {_short(self.new) or 'nothing'}"
        return f"{self.file} {self.place}: {change} in `{self.text}` #{self.nth}"

    def rank(self, seed: int) -> str:
        """Where the fault comes in a random order; independent of all other faults."""
        return hashlib.sha256(f"{seed} {self.key}".encode()).hexdigest()

    def applied(self, source: str) -> str:
        return source[: self.start] + self.new + source[self.end :]


def find_faults(file: str, source: str) -> list[Fault]:
    """Every fault that this file can be given, in the order of the text."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    lines, seen, faults = source.splitlines(), Counter[str](), []
    for line, start, end, place, new in sorted(finder.found):
        number = source.count("\n", 0, start)
        fault = Fault(file, line, start, end, place, _short(lines[number], 110), source[start:end], new, 0)
        faults.append(replace(fault, line=number + 1, nth=seen[fault.key]))
        seen[fault.key] += 1
    return faults


class _Finder(ast.NodeVisitor):
    """Collects (line, start, end, place, new text). Annotations, decorators, messages and docstrings are left alone."""

    def __init__(self, source: str) -> None:
        lines = source.splitlines(keepends=True)
        self.source = source
        self.bytes = [line.encode() for line in lines]
        self.offsets = [0]
        for line in lines:
            self.offsets.append(self.offsets[-1] + len(line))
        self.place: list[str] = []
        self.found: list[tuple[int, int, int, str, str]] = []

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
            return
        for start, end, new in self._changes(node):
            self.found.append((node.lineno, start, end, ".".join(self.place) or "module", new))  # type: ignore[attr-defined]
        named = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if named:
            self.place.append(node.name)  # type: ignore[attr-defined]
        for child in self._children(node):
            self.visit(child)
        if named:
            self.place.pop()

    def _children(self, node: ast.AST) -> Iterator[ast.AST]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                spared = isinstance(child, ast.keyword) and child.arg in SPARED_KEYWORDS
                if isinstance(child, ast.AST) and not spared:
                    yield child

    def _span(self, node: ast.AST) -> tuple[int, int]:
        def at(line: int, column: int) -> int:
            return self.offsets[line - 1] + len(self.bytes[line - 1][:column].decode())

        return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.source[start:end]

    def _changes(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        """(start, end, new text) of the faults of one node."""
        start, end = self._span(node) if hasattr(node, "lineno") else (0, 0)
        match node:
            case ast.Compare(ops=[op], left=left, comparators=[right]) if type(op) in COMPARISONS:
                yield self._between(left, right, *COMPARISONS[type(op)])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                if not any(isinstance(n, ast.JoinedStr) or _is_text(n) for n in ast.walk(node)):
                    yield self._between(left, right, *ARITHMETIC[type(op)])
            case ast.BoolOp(op=op, values=[first, second, *_]):
                yield self._between(first, second, *(("or", "and") if isinstance(op, ast.Or) else ("and", "or")))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield start, self._span(operand)[0], self.source[start : self._span(operand)[0]][3:].lstrip()
            case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
                yield start, start + 1, "+"
            case ast.Constant(value=bool() as value):
                yield start, end, str(not value)
            case ast.Constant(value=int() as value):
                yield start, end, str(value + 1)
            case ast.Constant(value=float() as value):
                yield start, end, repr(value * 2 if value else 1.0)
            case (
                ast.If(test=ast.Name() | ast.Attribute() | ast.Call() as test)
                | ast.IfExp(test=ast.Name() | ast.Attribute() | ast.Call() as test)
            ):
                yield *self._span(test), f"(not {self._text(test)})"
            case ast.Expr(value=ast.Call()):
                yield start, end, "pass"
            case ast.Call(func=ast.Attribute(value=value, attr=name) as function) if name in LEFT_OUT:
                if not _is_module(value):
                    yield self._span(function)[1] - len(name) - 1, end, ""
            case ast.Attribute(attr=name) if name in OTHER_NAME:
                yield end - len(name), end, OTHER_NAME[name]
            case ast.Call(func=ast.Name(id=name) as function) if name in ("min", "max", "any", "all"):
                yield *self._span(function), OTHER_NAME[name]

    def _between(self, left: ast.AST, right: ast.AST, sign: str, other: str) -> tuple[int, int, str]:
        """Another sign between two operands; brackets around them stay."""
        start, end = self._span(left)[1], self._span(right)[0]
        at = start + self.source[start:end].index(sign)
        return at, at + len(sign), other


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_module(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "np", "math")


def _short(text: str, limit: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."
