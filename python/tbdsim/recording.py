"""What a recorder saw of one step, at one batch size, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class TensorUse(NamedTuple):
    """A tensor as an operator sees it. Strides and the offset are in elements."""

    storage: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class Dtype(NamedTuple):
    """A dtype as an argument."""

    name: str


@dataclass
class StorageRecord:
    """A block of memory: its role, size in bytes, and the operators that make it and after which it is freed (-1: not in the step)."""

    role: str
    bytes: int
    made: int = -1
    freed: int = -1
    name: str = ""


@dataclass
class OperatorRecord:
    """An operator: its name with overload, phase, module (an index), arguments in the order of the schema, and outputs."""

    name: str
    phase: str
    module: int
    arguments: list[Any]
    outputs: list[TensorUse | None]


@dataclass
class Recording:
    """A step at one batch size."""

    modules: list[tuple[str, str]] = field(default_factory=list)
    storages: list[StorageRecord] = field(default_factory=list)
    operators: list[OperatorRecord] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: Where numbers were read by which the step may have decided.
    read: list[str] = field(default_factory=list)
