"""Values of tensors that a capture knows although it has no data: those of which every number is the same, as a mask of ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

_aten = torch.ops.aten
Number = float | int | bool

#: Operators that fill a new tensor, with the place of the value among their arguments, or the value.
_FILLS: dict[Any, tuple[int | None, Number]] = {
    _aten.full.default: (1, 0), _aten.full_like.default: (1, 0), _aten.new_full.default: (2, 0), _aten.scalar_tensor.default: (0, 0),
    _aten.ones.default: (None, 1), _aten.ones_like.default: (None, 1), _aten.new_ones.default: (None, 1),
    _aten.zeros.default: (None, 0), _aten.zeros_like.default: (None, 0), _aten.new_zeros.default: (None, 0),
}  # fmt: skip
#: Operators whose result is uniform where all tensors they read are: of each number, or of all of them.
_OF_NUMBERS = {
    "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or", "bitwise_not", "bitwise_and", "bitwise_or",
    "add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "neg", "_to_copy", "clone", "contiguous", "where",
    "all", "any", "amax", "amin", "mean",
}  # fmt: skip
#: Operators whose result has numbers of the first tensor alone.
_OF_FIRST = {"index", "index_select", "gather", "repeat", "upsample_nearest1d", "upsample_nearest2d", "masked_select"}


class UniformValues:
    """The values of storages that are uniform. Views share their storage's; an operator that writes to one makes it unknown."""

    def __init__(self) -> None:
        self._known: dict[StorageWeakRef, Number] = {}

    def value_of(self, tensor: torch.Tensor) -> Number | None:
        """Returns the value of every number of the tensor; None: not known."""
        return self._known.get(StorageWeakRef(tensor.untyped_storage())) if tensor.device.type == "meta" else None

    def follow(self, operator: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Takes note of an operator that has run."""
        written = written_tensors(operator, args, kwargs)
        if operator is _aten.masked_fill_.Scalar and self.value_of(args[1]) is False:
            return
        for tensor in written:
            self._known.pop(StorageWeakRef(tensor.untyped_storage()), None)
        if written or not isinstance(result, torch.Tensor) or result.device.type != "meta":
            return
        value = self._result(operator, args, kwargs, result)
        if value is not None:
            self._known = {storage: number for storage, number in self._known.items() if not storage.expired()}
            self._known[StorageWeakRef(result.untyped_storage())] = value

    # The numbers of a step are finite, as a capture assumes of a gradient scaler's check, too: isfinite() is made of
    # comparisons with themselves and with infinity.
    def _result(self, operator: Any, args: Any, kwargs: Any, result: torch.Tensor) -> Number | None:
        if operator in _FILLS:
            place, value = _FILLS[operator]
            filled = value if place is None else args[place] if place < len(args) else kwargs.get("fill_value")
            return filled if isinstance(filled, (bool, int, float)) else None
        name = operator.overloadpacket.__name__
        if name in ("isnan", "isinf"):
            return False
        if name in ("eq", "ne") and len(args) == 2 and (args[0] is args[1] or isinstance(args[1], float) and args[1] == math.inf):
            return (name == "eq") is (args[0] is args[1])
        if name in _OF_FIRST:
            return self.value_of(args[0])
        if name == "sum" and self.value_of(args[0]) is not None:
            return self.value_of(args[0]) * (args[0].numel() // max(result.numel(), 1))
        if name not in _OF_NUMBERS:
            return None
        read = list(tensors_in((*args, *kwargs.values())))
        if not read or any(tensor.device.type == "meta" and self.value_of(tensor) is None for tensor in read):
            return None
        if any(tensor.device.type != "meta" and tensor.numel() != 1 for tensor in read):
            return None
        with torch.device("cpu"):
            return operator(*[self._one(a) for a in args], **{k: self._one(v) for k, v in kwargs.items()}).flatten()[0].item()

    def _one(self, value: Any) -> Any:
        """Returns a tensor of one number with the dimensions of a uniform one, another device for the GPU, or what it was."""
        if isinstance(value, torch.Tensor) and value.device.type == "meta":
            return torch.full((1,) * value.dim(), self.value_of(value), dtype=value.dtype, device="cpu")
        return torch.device("cpu") if isinstance(value, torch.device) else value


@cache
def _written(operator: Any) -> list[tuple[int, str]]:
    """Returns place and name of the arguments that the operator writes to."""
    return [
        (place, argument.name)
        for place, argument in enumerate(operator._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def written_tensors(operator: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Returns the tensors that the operator writes to."""
    places = _written(operator)
    return [tensor for i, name in places for tensor in tensors_in(args[i] if i < len(args) else kwargs.get(name))]


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of an operator's argument or result, also those in lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
