"""Operators that a CUDA build runs as one and that PyTorch takes apart for tensors of the device "meta"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .attention import scaled_dot_product_attention
from .recurrent import CELLS, RECURRENT

_aten = torch.ops.aten


def _dropout(input: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """As `is_fused_kernel_acceptable` in ATen's Dropout.cpp decides: one kernel that writes the result and a mask."""
    if train and 0 < p < 1 and input.numel() > 0:
        return _aten.native_dropout(input, p, True)[0]
    return _aten.dropout(input, p, train)


def _half_to_float(fused: Any, other: Any) -> Callable[..., torch.Tensor]:
    """Softmax of fp16 with an fp32 result: one kernel that reads half and writes float, as ATen's SoftMax.cpp has it for CUDA."""

    def softmax(input: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        if input.dtype == torch.float16 and dtype == torch.float32:
            return fused(input, dim, True)
        return other(input, dim, dtype)

    return softmax


def _ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> torch.Tensor:
    """Reads the lengths on the host, as ATen's LossCTC.cpp does where no mode watches it."""
    inputs, outputs = input_lengths.to("cpu").tolist(), target_lengths.to("cpu").tolist()
    return _aten.ctc_loss.IntList(log_probs, targets, inputs, outputs, blank, reduction, zero_infinity)


#: What replaces an operator, by name.
AS_ONE: dict[str, Callable[..., Any]] = {
    "scaled_dot_product_attention": scaled_dot_product_attention,
    "dropout": _dropout,
    "ctc_loss.Tensor": _ctc_loss,
    "softmax.int": _half_to_float(_aten._softmax, _aten.softmax.int),
    "log_softmax.int": _half_to_float(_aten._log_softmax, _aten.log_softmax.int),
    **CELLS,
    **RECURRENT,
}
