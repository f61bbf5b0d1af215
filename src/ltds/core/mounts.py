"""File systems on which locks do not hold between machines."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

TABLE = Path("/proc/self/mountinfo")  # Linux; elsewhere there is none, and nothing is known
LOCAL = re.compile(r"(^|,)(nolock|local_lock=(flock|all))(,|$)")


@cache
def without_shared_locks(folder: str, table: Path = TABLE) -> str | None:
    """Where the NFS share is mounted that holds this folder, if its locks hold on this machine only."""
    try:
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    path = os.path.realpath(folder)
    best, options = "", ""
    for line in lines:
        # 36 35 98:0 / /mnt/share rw,noatime shared:1 - nfs4 server:/export rw,vers=4.2,local_lock=none
        before, _, after = line.partition(" - ")
        place, kind = before.split(" ")[4:5], after.split(" ")
        if not place or len(kind) < 3:
            continue
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), place[0])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, options = point, kind[2] if kind[0].startswith("nfs") else ""
    return best if LOCAL.search(options) else None
