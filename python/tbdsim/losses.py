"""The loss of a model's output, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import _disable_current_modes

#: A name of `LOSSES`, a callable of the output (and of the targets, where there are any), or None: the model returns its loss.
LossSource = str | Callable[..., torch.Tensor] | None


def _made_before(shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Returns targets as an input of the step: made where nothing is recorded."""
    with _disable_current_modes():
        return torch.empty(shape, dtype=dtype, device="meta")


def _cross_entropy(output: torch.Tensor) -> torch.Tensor:
    """Classes are the last dimension of (batch, classes) and (batch, length, classes), the second of (batch, classes, height, ...)."""
    if output.dim() == 3:
        output = output.flatten(0, 1)
    return F.cross_entropy(output, _made_before([output.shape[0], *output.shape[2:]], torch.int64))


def _against(function: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda output: function(output, _made_before(list(output.shape), torch.float32))


LOSSES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "cross_entropy": _cross_entropy,
    "mse": _against(F.mse_loss),
    "l1": _against(F.l1_loss),
    "bce_with_logits": _against(F.binary_cross_entropy_with_logits),
    "mean": lambda output: output.mean(),
    "sum": lambda output: output.sum(),
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
    raise ValueError(f"loss is None, and the model returns no loss (a scalar, `.loss` or ['loss']) but {type(output).__name__}: name one of {', '.join(LOSSES)}")


def build_loss(source: LossSource) -> Callable[..., torch.Tensor]:
    """Returns a callable of the model's output, and of the targets where there are any, that gives the loss: a scalar.

    A named loss of several outputs (auxiliary heads) is the sum over them.
    """
    if source is None:
        return _own_loss
    if callable(source):
        return source
    if source not in LOSSES:
        raise ValueError(f"loss is '{source}': expected {', '.join(LOSSES)}, a callable of the output, or None where the model returns it")
    function = LOSSES[source]

    def loss(output: Any) -> torch.Tensor:
        total: Any = None
        for tensor in _tensors(output):
            total = function(tensor) if total is None else total + function(tensor)
        if total is None:
            raise ValueError(f"loss is '{source}', and the model returns no tensor but {type(output).__name__}")
        return total

    return loss
