"""Merges captures at several batches into one step, whose sizes are a + b x batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .errors import CaptureError
from .recording import Dtype, OperatorRecord, Recording, TensorUse
from .step import Affine, DtypeArgument, Operator, Size, Storage, Tensor, TensorArgument


#: What errors say of a step that is not the same at every batch.
_ONE_BATCH = ", or a capture at one batch alone, as batches=[8]"
_DEPENDS = "what runs depends on the batch; expected the same operators at each" + _ONE_BATCH


class _NotAffine(Exception):
    pass


def affine(values: Sequence[int], batches: Sequence[int]) -> Size:
    """Returns the size that takes these values at these batches: the first two give a + b x batch, the others must agree."""
    if all(value == values[0] for value in values):
        return values[0]
    growth, rest = divmod(values[1] - values[0], batches[1] - batches[0])
    size = Affine(values[0] - growth * batches[0], growth)
    if rest or any(size.constant + growth * batch != value for value, batch in zip(values, batches)):
        raise _NotAffine
    return size


class _Merger:
    def __init__(self, recordings: Sequence[Recording], batches: Sequence[int]) -> None:
        self.recordings, self.batches = recordings, batches
        self.tensors: dict[Tensor, int] = {}
        self.warnings: list[str] = []
        self._of_library = False  # the operator that is merged

    def size(self, values: Sequence[int], what: str) -> Size:
        try:
            return affine(values, self.batches)
        except _NotAffine:
            at = ", ".join(f"{value} at batch {batch}" for value, batch in zip(values, self.batches))
            raise CaptureError(f"{what} is {at}: expected a + b x batch{_ONE_BATCH}") from None

    def where(self, operator: OperatorRecord, index: int) -> str:
        path, kind = self.recordings[0].modules[operator.module]
        return f"operator {index}, {operator.name} in module '{path}' ({kind}), {operator.phase}"

    def tensor(self, uses: Sequence[TensorUse], where: str) -> int:
        first = uses[0]
        if any((use.storage, use.dtype, len(use.shape)) != (first.storage, first.dtype, len(first.shape)) for use in uses):
            raise CaptureError(f"{where}: a tensor has another storage, dtype or number of dimensions at another batch: {_DEPENDS}")
        tensor = Tensor(
            first.storage,
            first.dtype,
            tuple(
                self.size(sizes, f"{where}: size {i} of a tensor") for i, sizes in enumerate(zip(*(use.shape for use in uses)))
            ),
            tuple(
                self.size(sizes, f"{where}: stride {i} of a tensor")
                for i, sizes in enumerate(zip(*(use.strides for use in uses)))
            ),
            self.size([use.offset for use in uses], f"{where}: the offset of a tensor"),
        )
        return self.tensors.setdefault(tensor, len(self.tensors))

    def is_list_over_batch(self, values: Sequence[list[Any]]) -> bool:
        """Whether a list has an entry for each sample, all whole numbers: lengths of sequences."""
        numbers = all(type(item) is int for value in values for item in value)
        of_samples = all(len(value) == batch for value, batch in zip(values, self.batches))
        return numbers and of_samples and len(self.batches) > 1

    def whole(self, values: Sequence[int], where: str) -> Size:
        """Returns a whole number; of a library's operators, which may count steps, that of the first batch where it is no a + b x batch."""
        try:
            return self.size(values, f"{where}: an argument")
        except CaptureError:
            if not self._of_library:
                raise
            self.warnings.append(f"{where}: a number that is no a + b x batch is written as at batch {self.batches[0]}")
            return values[0]

    def argument(self, values: Sequence[Any], where: str) -> Any:
        first = values[0]
        if any(type(value) is not type(first) for value in values):
            raise CaptureError(
                f"{where}: an argument is {', '.join(map(str, values))} at batches {', '.join(map(str, self.batches))}"
            )
        if isinstance(first, TensorUse):
            return TensorArgument(self.tensor(values, where))
        if isinstance(first, Dtype):
            return DtypeArgument(first.name)
        if isinstance(first, list):
            if self.is_list_over_batch(values):
                self.warnings.append(f"{where}: a list of numbers, one a sample, is written as at batch {self.batches[0]}")
                return first
            if any(len(value) != len(first) for value in values):
                raise CaptureError(
                    f"{where}: a list has {', '.join(str(len(value)) for value in values)} entries at batches {', '.join(map(str, self.batches))}: "
                    + _DEPENDS
                )
            return [self.argument(items, where) for items in zip(*values)]
        if isinstance(first, int) and not isinstance(first, bool):
            return self.whole(values, where)
        if isinstance(first, float):
            return first  # a factor, such as 1 / batch: no size depends on it
        if any(value != first for value in values):
            raise CaptureError(
                f"{where}: an argument is {', '.join(map(str, values))} at batches {', '.join(map(str, self.batches))}"
            )
        return first

    def operator(self, index: int, operators: Sequence[OperatorRecord]) -> Operator:
        first = operators[0]
        where = self.where(first, index)
        for other, batch in zip(operators[1:], self.batches[1:]):
            if (other.name, other.phase, other.module, len(other.outputs)) != (
                first.name,
                first.phase,
                first.module,
                len(first.outputs),
            ):
                raise CaptureError(
                    f"{where}: at batch {batch} it is {other.name}, {other.phase}: {_DEPENDS}"
                )
        outputs = [
            -1 if uses[0] is None else self.tensor(uses, where) for uses in zip(*(operator.outputs for operator in operators))
        ]
        self._of_library = not first.name.startswith(("aten.", "tbdsim."))
        arguments = self.argument([operator.arguments for operator in operators], where)
        return Operator(first.name, first.phase, first.module, arguments, outputs)

    def operators(self) -> list[Operator]:
        merged = [self.operator(i, operators) for i, operators in enumerate(zip(*(r.operators for r in self.recordings)))]
        counts = [len(recording.operators) for recording in self.recordings]
        if len(set(counts)) > 1:
            batches = ", ".join(map(str, self.batches))
            raise CaptureError(f"{', '.join(map(str, counts))} operators at batches {batches}: {_DEPENDS}")
        return merged

    def storages(self) -> list[Storage]:
        merged = []
        for records in zip(*(recording.storages for recording in self.recordings)):
            first = records[0]
            maker = (
                self.where(self.recordings[0].operators[first.made], first.made)
                if first.made >= 0
                else f"{first.role} '{first.name}'"
            )
            size = self.size([record.bytes for record in records], f"{maker}: the bytes of a tensor")
            kept = any(record.freed < 0 for record in records)
            freed = -1 if kept else max(record.freed for record in records)
            merged.append(Storage(first.role, size, first.made, freed, first.name))
        return merged


class Merged(NamedTuple):
    storages: list[Storage]
    tensors: list[Tensor]
    operators: list[Operator]
    warnings: list[str]


def merge(recordings: Sequence[Recording], batches: Sequence[int]) -> Merged:
    """Returns a step recorded at these batches; an error names the operator that does not fit."""
    merger = _Merger(recordings, batches)
    operators = merger.operators()
    return Merged(merger.storages(), list(merger.tensors), operators, merger.warnings)
