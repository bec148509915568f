"""A captured training step: what a step file holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .summary import Summary


class Affine(NamedTuple):
    """A number that grows with the batch: constant + per_sample x batch."""

    constant: int
    per_sample: int


#: A number that may grow with the batch.
Size = int | Affine


def size_at(size: Size, batch: int) -> int:
    """Returns the number that a size stands for at a batch."""
    return size.constant + size.per_sample * batch if isinstance(size, Affine) else size


class Storage(NamedTuple):
    """A block of memory. `made` is the operator that makes it, `freed` the last one before it is let go; -1: not in the step."""

    role: str
    bytes: Size
    made: int
    freed: int
    name: str


class Tensor(NamedTuple):
    """A tensor in a storage; shape, strides and offset in elements."""

    storage: int
    dtype: str
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size


class TensorArgument(NamedTuple):
    """A tensor as an argument: an index of `Step.tensors`."""

    index: int


class DtypeArgument(NamedTuple):
    """A dtype as an argument."""

    name: str


class Operator(NamedTuple):
    """An operator of PyTorch. `outputs` are indices of `Step.tensors`, -1 where there is none."""

    name: str
    phase: str
    module: int
    arguments: list[Any]
    outputs: list[int]

    def tensors(self) -> list[int]:
        """Returns the indices of the tensors that are arguments, also those in lists."""
        found: list[int] = []
        waiting = list(reversed(self.arguments))
        while waiting:
            value = waiting.pop()
            if isinstance(value, TensorArgument):
                found.append(value.index)
            elif isinstance(value, list):
                waiting.extend(reversed(value))
        return found


@dataclass
class Step:
    """One training step, operator by operator. Sizes may grow with the batch (`size_at`)."""

    name: str
    title: str
    sample: str
    length: int
    precision: str
    channels_last: bool
    captured_with: dict[str, Any]
    modules: list[tuple[str, str]]
    storages: list[Storage]
    tensors: list[Tensor]
    operators: list[Operator]
    warnings: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        """Returns one line; all fields of a step are megabytes."""
        length = f" of {self.length}" if self.length else ""
        return f"<Step {self.name!r}: {self.sample}s{length} in {self.precision}, {len(self.operators)} operators; .summary() has more>"

    def save(self, path: str | Path) -> None:
        """Writes the step file; compressed where the name ends in `.gz`. A file of that name is replaced at once or not at all."""
        from .step_file import save

        save(self, Path(path))

    def summary(self) -> Summary:
        """Returns operators, parameters, multiply-adds and activations of each module; printing it gives a table."""
        from .summary import summarize

        return summarize(self)

    def parameter_counts(self) -> dict[str, int]:
        """Returns the number of weights of each parameter, by name."""
        from .summary import parameter_counts

        return parameter_counts(self)
