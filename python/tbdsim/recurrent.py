"""Recurrent layers as cuDNN runs them: one operator for all layers, steps and directions, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_aten = torch.ops.aten
_RELU, _TANH, _LSTM, _GRU = range(4)  # cuDNN's numbers of the cells


def _half(tensor: torch.Tensor) -> torch.Tensor:
    """Casts as autocast does the input, state and weights of a recurrent layer; weights are cast each time (`AutocastRNN.cpp`)."""
    return tensor.to(torch.get_autocast_dtype("cuda")) if tensor.dtype == torch.float32 else tensor


def _recurrent(cell: int) -> Callable[..., Any]:
    def layer(
        input: torch.Tensor,
        hx: Any,
        params: list[torch.Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[torch.Tensor, ...]:
        hidden, state = (hx[0], hx[1]) if cell == _LSTM else (hx, None)
        if torch.is_autocast_enabled("cuda"):
            input, hidden, params = _half(input), _half(hidden), [_half(weight) for weight in params]
            state = None if state is None else _half(state)
        width = hidden.shape[2] if state is None else state.shape[2]
        projected = hidden.shape[2] if hidden.shape[2] != width else 0
        per_layer = (4 if has_biases else 2) + (1 if projected else 0)
        flat = input.new_empty(0)  # on a GPU the weights lie in one buffer, without a copy
        output, hidden, state, _, _ = _aten._cudnn_rnn(
            input, params, per_layer, flat, hidden, state, cell, width, projected,
            num_layers, batch_first, dropout, train, bidirectional, [], None,
        )  # fmt: skip
        return (output, hidden, state) if cell == _LSTM else (output, hidden)

    return layer


#: What replaces PyTorch's operators of whole recurrent layers, by name; those of packed sequences are taken apart.
RECURRENT: dict[str, Callable[..., Any]] = {
    "rnn_relu.input": _recurrent(_RELU),
    "rnn_tanh.input": _recurrent(_TANH),
    "lstm.input": _recurrent(_LSTM),
    "gru.input": _recurrent(_GRU),
}
