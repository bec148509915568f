"""Operators that a CUDA build runs as one and that PyTorch takes apart for tensors of the device "meta"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .attention import scaled_dot_product_attention

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


def _recurrent(mode: int, other: Any) -> Callable[..., Any]:
    """A recurrent network in cuDNN's one operator for all layers, steps and directions (`mode`: 0 ReLU, 1 tanh, 2 LSTM, 3 GRU)."""
    is_lstm = mode == 2

    def recurrent(
        input: torch.Tensor,
        hx: Any,
        params: list[torch.Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> Any:
        hidden, cell = (hx[0], hx[1]) if is_lstm else (hx, None)
        if input.dim() != 3 or torch.is_autocast_enabled("cuda"):
            # autocast casts the weights of recurrent layers in a way of its own (RNN cells are on its list); taken apart here
            return other(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
        steps = input.transpose(0, 1) if batch_first else input
        projected = hidden.shape[2] if cell is not None and hidden.shape[2] != cell.shape[2] else 0
        width = cell.shape[2] if cell is not None else hidden.shape[2]
        per_layer = len(params) // (num_layers * (2 if bidirectional else 1))
        output, hidden_out, cell_out, _, _ = _aten._cudnn_rnn(
            steps, params, per_layer, None, hidden, cell, mode, width, projected, num_layers, False, dropout, train, bidirectional, [], None
        )
        output = output.transpose(0, 1) if batch_first else output
        return (output, hidden_out, cell_out) if is_lstm else (output, hidden_out)

    return recurrent


#: What replaces an operator, by name.
AS_ONE: dict[str, Callable[..., Any]] = {
    "scaled_dot_product_attention": scaled_dot_product_attention,
    "dropout": _dropout,
    "softmax.int": _half_to_float(_aten._softmax, _aten.softmax.int),
    "log_softmax.int": _half_to_float(_aten._log_softmax, _aten.log_softmax.int),
}
