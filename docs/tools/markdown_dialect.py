"""Pages as GitHub reads them, rewritten so that Python-Markdown, which builds the site, reads the same.

GitHub follows CommonMark: a list may follow a paragraph without a blank line, and what belongs to an item is indented
as far as the item's text. Python-Markdown needs blank lines and four spaces. `for_site` parses a page with
markdown-it-py and writes its blocks again with both.
"""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

CONTAINERS = ("root", "blockquote")


def for_site(text: str) -> str:
    """The page with every block after a blank line, items indented by four, and all code between fences."""
    tree = SyntaxTreeNode(MarkdownIt("commonmark").enable("table").parse(text))
    return "\n".join(_blocks(tree)) + "\n"


def _blocks(node: SyntaxTreeNode) -> list[str]:
    """The lines of all blocks inside a node, each followed by an empty line."""
    lines: list[str] = []
    for child in node.children:
        lines += [*_lines(child), ""]
    return lines


def _lines(node: SyntaxTreeNode) -> list[str]:
    match node.type:
        case "bullet_list" | "ordered_list":
            return [line for number, item in enumerate(node.children, start=1) for line in _item(node, item, number)]
        case "paragraph":
            return _text(node).splitlines()
        case "heading":
            return [f"{'#' * int(node.tag[1])} {_text(node)}"]
        case "fence" | "code_block":
            mark = "~~~~" if "```" in node.content else "```"
            return [mark + (node.info if node.type == "fence" else "text"), *node.content.splitlines(), mark]
        case "table":
            return _table(node)
        case "blockquote":
            return [f"> {line}".rstrip() for line in _blocks(node)[:-1]]
        case "html_block":
            return node.content.splitlines()
        case "hr":
            return ["---"]
    raise ValueError(f"Expected a block of Markdown that the site knows, but got '{node.type}'. Add it to {__file__}.")


def _item(parent: SyntaxTreeNode, item: SyntaxTreeNode, number: int) -> list[str]:
    mark = "-" if parent.type == "bullet_list" else f"{number}."
    first, *rest = _blocks(item) or [""]
    if len(item.children) == 1:  # no empty line between short items
        rest = rest[:-1]
    return [mark.ljust(4) + first, *(f"    {line}".rstrip() for line in rest)]


def _table(node: SyntaxTreeNode) -> list[str]:
    rows = [[_cell(cell) for cell in row.children] for part in node.children for row in part.children]
    aligned = [str(cell.attrs.get("style", "")) for cell in node.children[0].children[0].children]
    rule = ["--:" if "right" in style else ":-:" if "center" in style else "---" for style in aligned]
    return [f"| {' | '.join(cells)} |" for cells in (rows[0], rule, *rows[1:])]


def _cell(cell: SyntaxTreeNode) -> str:
    """A cell's text; a bar inside code stays as it is, any other is escaped."""
    parts = _text(cell).split("`")
    return "`".join(part if i % 2 else part.replace("|", "\\|") for i, part in enumerate(parts))


def _text(node: SyntaxTreeNode) -> str:
    return node.children[0].content if node.children else ""
