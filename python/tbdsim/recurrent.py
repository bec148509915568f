"""Recurrent layers as cuDNN runs them, one operator for all layers, steps and directions; and single cells as CUDA builds run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_aten = torch.ops.aten
_RELU, _TANH, _LSTM, _GRU = range(4)  # cuDNN's numbers of the cells


def _half(tensor: torch.Tensor) -> torch.Tensor:
    """Casts as autocast does the input, state and weights of a recurrent layer; weights are cast each time (`AutocastRNN.cpp`)."""
    return tensor.to(torch.get_autocast_dtype("cuda")) if tensor.dtype == torch.float32 else tensor


def _called(
    cell: int, input: torch.Tensor, hx: Any, params: list[torch.Tensor], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool, batch_sizes: list[int],
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Calls cuDNN's operator. `batch_sizes`: of a packed sequence the samples that each step has; else empty."""
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
        num_layers, batch_first, dropout, train, bidirectional, batch_sizes, None,
    )  # fmt: skip
    return (output, hidden, state) if cell == _LSTM else (output, hidden)


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
        return _called(cell, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, [])

    return layer


def _of_packed_sequence(cell: int) -> Callable[..., Any]:
    def layer(
        data: torch.Tensor,
        batch_sizes: torch.Tensor,
        hx: Any,
        params: list[torch.Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> tuple[torch.Tensor, ...]:
        sizes = batch_sizes.tolist()
        return _called(cell, data, hx, params, has_biases, num_layers, dropout, train, bidirectional, False, sizes)

    return layer


def _gates(
    input: torch.Tensor, hidden: torch.Tensor, of_input: torch.Tensor, of_hidden: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the two products of a cell, without the biases: its kernel adds them."""
    return _aten.matmul(input, of_input.t()), _aten.matmul(hidden, of_hidden.t())


def _lstm_cell(
    input: torch.Tensor, hx: list[torch.Tensor], w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: Any = None, b_hh: Any = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """As ATen's RNN.cpp has it (`LSTMCell`) for tensors of CUDA: two products and one kernel."""
    if not input.is_meta:
        return _aten.lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh)
    hidden, state, _ = _aten._thnn_fused_lstm_cell(*_gates(input, hx[0], w_ih, w_hh), hx[1], b_ih, b_hh)
    return hidden, state


def _gru_cell(
    input: torch.Tensor, hx: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: Any = None, b_hh: Any = None
) -> torch.Tensor:
    """As ATen's RNN.cpp has it (`GRUCell`) for tensors of CUDA: two products and one kernel."""
    if not input.is_meta:
        return _aten.gru_cell(input, hx, w_ih, w_hh, b_ih, b_hh)
    return _aten._thnn_fused_gru_cell(*_gates(input, hx, w_ih, w_hh), hx, b_ih, b_hh)[0]


#: What replaces PyTorch's operators of single cells; a cell of `RNNCell` is in pieces on a GPU too.
CELLS: dict[str, Callable[..., Any]] = {"lstm_cell": _lstm_cell, "gru_cell": _gru_cell}

#: What replaces PyTorch's operators of whole recurrent layers, by name: of sequences of one length, and of packed ones.
RECURRENT: dict[str, Callable[..., Any]] = {
    f"{name}.{kind}": make(cell)
    for kind, make in (("input", _recurrent), ("data", _of_packed_sequence))
    for name, cell in (("rnn_relu", _RELU), ("rnn_tanh", _TANH), ("lstm", _LSTM), ("gru", _GRU))
}
