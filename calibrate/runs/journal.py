"""The raw log: one JSON object a line, written through to the disk at once, so that a kill loses nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
FINISHED = ("ok", "skipped", "failed", "crashed")
"""Statuses that end a configuration; "started" opens one."""


class Journal:
    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry, allow_nan=False).encode() + b"\n"
        with self.path.open("ab+") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    line = b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def entries(self) -> list[Entry]:
        """Every whole line; one that a kill cut short is left out and said."""
        if not self.path.exists():
            return []
        entries = []
        for number, line in enumerate(self.path.read_bytes().splitlines(), 1):
            try:
                entries.append(json.loads(line))
            except ValueError:
                if line:
                    print(f"{self.path}:{number}: not a whole line, left out", file=sys.stderr)
        return entries

    def latest(self, gpu: str) -> dict[str, Entry]:
        """The last finished entry of every configuration on this GPU."""
        return {e["key"]: e for e in self.entries() if e["gpu"] == gpu and e["status"] in FINISHED}

    def unfinished(self, since: int) -> Entry | None:
        """The last entry, if it is among those after the first `since` and only opens a configuration."""
        entries = self.entries()[since:]
        return entries[-1] if entries and entries[-1]["status"] == "started" else None
