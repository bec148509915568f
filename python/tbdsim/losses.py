"""The loss of a model's output, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import _disable_current_modes

#: A name of `LOSSES`, a callable of the output (and of the targets, where there are any), or None: the model returns its loss.
LossSource = str | Callable[..., torch.Tensor] | None


class _Targets:
    """Targets as inputs of the step: made where nothing is recorded, and kept."""

    def __init__(self) -> None:
        self._made: dict[tuple[tuple[int, ...], torch.dtype], torch.Tensor] = {}

    def __call__(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        key = tuple(shape), dtype
        if key not in self._made:
            with _disable_current_modes():
                self._made[key] = torch.empty(shape, dtype=dtype, device="meta")
        return self._made[key]


def _cross_entropy(output: torch.Tensor, targets: _Targets) -> torch.Tensor:
    """Classes are the last dimension of (batch, classes) and (batch, length, classes), the second of (batch, classes, height, ...)."""
    if output.dim() == 3:
        output = output.flatten(0, 1)
    return F.cross_entropy(output, targets([output.shape[0], *output.shape[2:]], torch.int64))


def _against(function: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor, _Targets], torch.Tensor]:
    return lambda output, targets: function(output, targets(output.shape, torch.float32))


LOSSES: dict[str, Callable[[torch.Tensor, _Targets], torch.Tensor]] = {
    "cross_entropy": _cross_entropy,
    "mse": _against(F.mse_loss),
    "l1": _against(F.l1_loss),
    "bce_with_logits": _against(F.binary_cross_entropy_with_logits),
    "mean": lambda output, _: output.mean(),
    "sum": lambda output, _: output.sum(),
}


def _tensors(output: Any) -> list[torch.Tensor]:
    """Returns the floating-point tensors of an output: of a tensor, tuple, list, dict or an output object of `transformers`."""
    if isinstance(output, torch.Tensor):
        return [output] if output.is_floating_point() else []
    if isinstance(output, dict):
        output = list(output.values())
    return [tensor for item in output for tensor in _tensors(item)] if isinstance(output, (list, tuple)) else []


def _own_loss(output: Any) -> torch.Tensor:
    loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", output)
    for tensor in _tensors(loss):
        if tensor.dim() == 0:
            return tensor
    raise ValueError(
        f"loss is None, and the model returns no loss (a scalar, `.loss` or ['loss']) but {type(output).__name__}: "
        f"name one of {', '.join(LOSSES)}"
    )


def build_loss(source: LossSource) -> Callable[..., torch.Tensor]:
    """Returns a callable of the model's output, and of the targets where there are any, that gives the loss: a scalar.

    A named loss of several outputs (auxiliary heads) is the sum over them.
    """
    if source is None:
        return _own_loss
    if callable(source):
        return source
    if source not in LOSSES:
        raise ValueError(
            f"loss is '{source}': expected {', '.join(LOSSES)}, a callable of the output, or None where the model returns it"
        )
    function, targets = LOSSES[source], _Targets()

    def loss(output: Any) -> torch.Tensor:
        total: Any = None
        for tensor in _tensors(output):
            total = function(tensor, targets) if total is None else total + function(tensor, targets)
        if total is None:
            raise ValueError(f"loss is '{source}', and the model returns no tensor but {type(output).__name__}")
        return total

    return loss
