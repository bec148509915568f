"""Puts the package on the import path where it is not installed, and skips what needs PyTorch, timm or transformers where they are missing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
if importlib.util.find_spec("tbdsim") is None:
    sys.path.insert(0, str(PACKAGE))

#: Test files that capture nothing.
WITHOUT_TORCH = {"test_commands.py", "test_step_file.py", "test_summary.py"}
collect_ignore: list[str] = []


def pytest_configure(config: object) -> None:
    if importlib.util.find_spec("torch") is None:
        collect_ignore.extend(path.name for path in Path(__file__).parent.glob("test_*.py") if path.name not in WITHOUT_TORCH)


def pytest_report_header() -> str | None:
    return "PyTorch is not installed: captures are not tested" if collect_ignore else None
