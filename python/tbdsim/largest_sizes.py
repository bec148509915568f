"""Results of operators whose size depends on the data, as large as they can be, as if every condition held, or a share of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_aten = torch.ops.aten


def _places(mask: torch.Tensor) -> torch.Tensor:
    """Returns what `nonzero` gives where no number is zero."""
    return torch.empty((mask.numel(), mask.dim()), dtype=torch.int64, device="meta")


def _selected(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return x.new_empty(torch.broadcast_shapes(x.shape, mask.shape).numel())


def _unique(x: torch.Tensor, _: bool = True, inverse: bool = False, counts: bool = False) -> tuple[torch.Tensor, ...]:
    numbers = torch.empty(x.numel(), dtype=torch.int64, device="meta")
    none = torch.empty(0, dtype=torch.int64, device="meta")
    return (
        x.new_empty(x.numel()),
        numbers.view(x.shape) if inverse else none,
        torch.empty_like(numbers) if counts else none,
    )


def _kept_boxes(boxes: torch.Tensor, *_: Any) -> torch.Tensor:
    return torch.empty(boxes.shape[0], dtype=torch.int64, device="meta")


def _counts(x: torch.Tensor, weights: torch.Tensor | None = None, least: int = 0) -> torch.Tensor | None:
    """Returns as many counts as are asked for at least, if so: callers give the number of classes."""
    dtype = torch.int64 if weights is None else weights.dtype if weights.is_floating_point() else torch.float64
    return torch.empty(least, dtype=dtype, device="meta") if least else None


_RESULTS: dict[str, Callable[..., Any]] = {
    "aten.nonzero.default": _places,
    "aten.masked_select.default": _selected,
    "aten.bincount.default": _counts,
    "aten._unique2.default": _unique,
    "torchvision.nms.default": _kept_boxes,
}


def largest_result(operator: Any, share: float, args: Any, kwargs: Any) -> Any:
    """Returns the largest result, of `share` of its rows; None for an operator of which it is not known here. What `unique` gives has
    all rows, since each number has its place among them, and `bincount` all counts."""
    result = _RESULTS.get(str(operator))
    if result is None:
        return None
    largest = result(*args, **kwargs)
    whole = share == 1 or str(operator) == "aten.bincount.default"
    return largest[: round(share * largest.shape[0])].clone() if isinstance(largest, torch.Tensor) and not whole else largest


def with_places(operator: Any, args: Any) -> Any:
    """Returns the arguments of an indexing operator with boolean masks replaced by the places where they hold, which a CUDA build
    looks up first (`expandTensors` in ATen's IndexingUtils.h); None where there is no mask on the GPU."""
    if operator is not _aten.index.Tensor or not any(is_mask(index) for index in args[1]):
        return None
    indices: list[Any] = []
    for index in args[1]:
        indices += _aten.nonzero(index).unbind(1) if is_mask(index) else [index]
    return (args[0], indices, *args[2:])


def is_mask(index: Any) -> bool:
    return index is not None and index.dtype in (torch.bool, torch.uint8) and index.is_meta
