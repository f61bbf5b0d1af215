"""A figure as part of the page: SVG whose parts the filters can hide, because they say which method they show."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qsl, urlencode

_MARK = "ltds?"
_DROPPED = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_NAME = re.compile(r'\bid="([^"]*)"')
_REFERENCE = re.compile(r'(url\(#|href="#)')
_NAMESPACE = re.compile(r' xmlns(?::\w+)?="[^"]*"')
_SIZE = re.compile(r' (?:width|height)="[\d.]+pt"')
PIXELS_PER_POINT = 1.76  # on the page: a figure of 9 inches fills it


def tag(method: str = "", domain: str = "") -> str:
    """The gid of an artist that shows one method, or one held-out domain: the filters of the page hide it."""
    return _MARK + urlencode({key: value for key, value in (("method", method), ("domain", domain)) if value})


def inline_svg(drawn: str, number: int, alt: str) -> str:
    """The SVG file as an element of a page. `number`: of the figure, for ids that are unique in the page."""
    drawing = _DROPPED.sub("", drawn[drawn.index("<svg") :])
    opening, rest = drawing.split(">", 1)
    width = re.search(r'viewBox="\S+ \S+ ([\d.]+) ', opening)
    limit = f"max-width:{float(width[1]) * PIXELS_PER_POINT:.0f}px" if width else ""
    opening = _SIZE.sub("", _NAMESPACE.sub("", opening)).replace("<svg", f'<svg role="img" style="{limit}"', 1)
    rest = _TAG.sub(lambda match: _adapted(match[0], f"f{number}-"), rest)
    return f'{opening} aria-label="{html.escape(alt)}">{rest}'


def _adapted(element: str, prefix: str) -> str:
    """One tag with its id as data attributes, if `tag` made it, or else with a prefix; references get it as well."""
    named = _NAME.sub(lambda match: _attributes(match[1], prefix), element)
    return _REFERENCE.sub(lambda match: match[1] + prefix, named)


def _attributes(name: str, prefix: str) -> str:
    plain = html.unescape(name)
    if not plain.startswith(_MARK):
        return f'id="{prefix}{name}"'
    pairs = parse_qsl(plain.removeprefix(_MARK))
    return " ".join(f'data-{key}="{html.escape(value)}"' for key, value in pairs if key in ("method", "domain"))
