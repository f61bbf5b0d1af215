"""Which names of the server a request may use.

A page on the web can let its own name point to 127.0.0.1 and so have a visitor's browser talk to programs there as if
they were that page ("DNS rebinding"). The browser still sends the name, in the header Host: a name that the user does
not know is refused. An address in numbers needs no name server, so nobody can redirect it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit


def is_allowed(host: str, names: Iterable[str] = ()) -> bool:
    """Whether a Host header names localhost, an address in numbers, or one of `names`; with any port."""
    name = _name(host)
    return name is not None and (name == "localhost" or is_address(name) or name in {n.lower() for n in names})


def is_same_origin(origin: str | None, host: str) -> bool:
    """Whether a request comes from the server's own page, or from a program that is no browser and says no origin.

    The page has the scheme https behind a proxy that encrypts. Name and port must be those of `host`, which must be
    allowed (see `is_allowed`): the scheme protects neither against other sites nor against DNS rebinding.
    """
    return origin is None or origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    """Whether only programs on this machine reach a server at this name."""
    return name == "localhost" or (is_address(name) and ipaddress.ip_address(name).is_loopback)


def _name(host: str) -> str | None:
    try:
        parts = urlsplit(f"//{host}")
        if parts.netloc != host or parts.username is not None or parts.port == 0:
            return None
        return parts.hostname
    except ValueError:  # a port that is no number, a bracket too many
        return None
