"""An attribute with another value for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Gives `owner.name` another value until the block ends. Nothing happens where `owner` has no such attribute."""
    missing = object()
    before = getattr(owner, name, missing)
    if before is missing:
        yield
        return
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
