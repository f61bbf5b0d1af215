"""What mkdocs does besides its own work when it builds the site (a hook, see mkdocs.yml).

Pages are written for GitHub: their links lead to files of the repository outside docs/, too. In the site such files are
copied to `repository/`, so that every link works without a network. CHANGELOG.md and CONTRIBUTING.md become pages.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
from markdown_dialect import for_site  # noqa: E402

LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]`]|`[^`]*`)*)\]\((?P<target>[^)\s]+)\)")
AS_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "README.md": "index.md"}
COPIED = ("results", "examples", "configs")
LOADED = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=["']?https?://[^>]*>""")


def on_config(config: Any) -> None:
    """List the pages of all methods where the navigation says `methods/`."""
    pages = sorted((ROOT / "docs" / "methods").glob("*.md"))
    config.nav = _listed(config.nav, "methods/", [{page.stem: f"methods/{page.name}"} for page in pages])


def _listed(items: Any, mark: str, pages: list[dict[str, str]]) -> Any:
    """The navigation with the pages in the place of the mark."""
    if isinstance(items, dict):
        return {name: _listed(below, mark, pages) for name, below in items.items()}
    if not isinstance(items, list):
        return items
    return [page for item in items for page in (pages if item == mark else [_listed(item, mark, pages)])]


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files that lie outside docs/."""
    for name, page in AS_PAGES.items():
        if page != "index.md":
            text = (ROOT / name).read_text(encoding="utf-8")
            files.append(File.generated(config, page, content=_below_docs(text)))
    for file in sorted(file for folder in COPIED for file in (ROOT / folder).rglob("*") if file.is_file()):
        if file.suffix in (".json", ".py", ".toml", ".md"):
            name = f"repository/{file.relative_to(ROOT).as_posix()}"
            name = name.removesuffix(".md") + ".txt" if file.suffix == ".md" else name
            files.append(File.generated(config, name, abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """The page in the dialect of the site, with links that leave docs/ pointing to the copies."""
    return for_site(LINK.sub(lambda link: _inside(link, page.file.src_uri), markdown))


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Refuse a page that loads something from the web. Links that a reader may follow are fine."""
    loaded = [tag for tag in LOADED.findall(output) if 'rel="canonical"' not in tag]
    if loaded:
        raise PluginError(f"{page.file.src_uri} loads {loaded[0]}. The site must work without a network.")
    return output


def _inside(link: re.Match[str], page: str) -> str:
    """The link as the site needs it; only its text where it leads to a file or folder that is not copied."""
    target, _, anchor = link["target"].partition("#")
    if not target or "://" in target or target.startswith("mailto:"):
        return link[0]
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    if path.startswith("docs/"):
        return link[0]
    if path in AS_PAGES:
        to = AS_PAGES[path]
    elif path.split("/")[0] in COPIED and (ROOT / path).is_file():
        to = "repository/" + (path.removesuffix(".md") + ".txt" if path.endswith(".md") else path)
    else:
        return link["text"] if "`" in link["text"] else f"{link['text']} (`{path}`)"
    up = posixpath.relpath(to, posixpath.dirname(page) or ".")
    return f"[{link['text']}]({up}{'#' + anchor if anchor else ''})"


def _below_docs(text: str) -> str:
    """A page of the repository's root as if it lay in docs/."""
    move = lambda link: f"[{link['text']}]({_moved(link['target'])})"  # noqa: E731
    return LINK.sub(move, text)


def _moved(target: str) -> str:
    if "://" in target or target.startswith("#"):
        return target
    return target.removeprefix("docs/") if target.startswith("docs/") else f"../{target}"
