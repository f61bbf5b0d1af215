"""The page: one HTML file of this package, with a policy that lets it load nothing else and run no other script."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class ServedPage:
    """The HTML, and the Content-Security-Policy to send with it."""

    content: bytes
    policy: str


def read_page() -> ServedPage:
    text = files("ltds.serving").joinpath("page.html").read_text(encoding="utf-8")
    style, script = _hash_of(text, "style"), _hash_of(text, "script")
    policy = (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; img-src data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return ServedPage(text.encode(), policy)


def _hash_of(page: str, element: str) -> str:
    """What names the only element of this kind in the policy."""
    (content,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
