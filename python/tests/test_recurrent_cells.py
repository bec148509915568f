"""Single cells of recurrent layers: on a GPU two products and one kernel each, in both passes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import tbdsim
from tbdsim.step import Affine, Operator, Step

STEPS, INPUTS, HIDDEN, CLASSES = 7, 16, 32, 5


def captured(kind: str, bias: bool = True, precision: str = "fp32") -> Step:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = getattr(nn, f"{kind}Cell")(INPUTS, HIDDEN, bias)
            self.fc = nn.Linear(HIDDEN, CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden: Any = None
            for i in range(STEPS):
                hidden = self.cell(x[:, i], hidden)
            return self.fc(hidden[0] if kind == "LSTM" else hidden)

    return tbdsim.capture(Recurrent, torch.empty(1, STEPS, INPUTS), loss="cross_entropy", precision=precision)


def named(step: Step, name: str, phase: str) -> list[Operator]:
    return [operator for operator in step.operators if operator.name == name and operator.phase == phase]


def shapes(step: Step, places: list[int]) -> list[tuple[Any, ...]]:
    return [step.tensors[i].shape for i in places if i >= 0]


@pytest.mark.parametrize("kind, gates, kept", [("LSTM", 4, 4), ("GRU", 3, 5)])
@pytest.mark.parametrize("precision, dtype", [("fp32", "f32"), ("fp16", "f16"), ("bf16", "bf16")])
@pytest.mark.parametrize("bias", [True, False])
def test_a_cell_is_two_products_and_one_kernel(kind: str, gates: int, kept: int, precision: str, dtype: str, bias: bool) -> None:
    step = captured(kind, bias, precision)
    fused = named(step, f"aten._thnn_fused_{kind.lower()}_cell.default", "forward")
    back = f"aten._thnn_fused_{kind.lower()}_cell_backward" + ("_impl" if kind == "LSTM" else "") + ".default"
    backward = named(step, back, "backward")
    assert len(fused) == len(backward) == STEPS
    assert len(named(step, "aten.mm.default", "forward")) == 2 * STEPS
    # gradients of two weights in each step, of the hidden state in all but the first, of the last layer's weight and input
    assert len(named(step, "aten.mm.default", "backward")) == 2 * STEPS + (STEPS - 1) + 2
    assert not [operator for operator in step.operators if "sigmoid" in operator.name or "tanh" in operator.name]
    samples, all_gates = Affine(0, 1), gates * HIDDEN
    state = (samples, HIDDEN)
    biases = [(all_gates,)] * 2 if bias else []
    assert shapes(step, fused[0].tensors())[: 3 + len(biases)] == [(samples, all_gates)] * 2 + [state, *biases]
    states = 2 if kind == "LSTM" else 1
    assert shapes(step, fused[0].outputs) == [state] * states + [(samples, kept * HIDDEN)]
    sums = biases[: 1 if kind == "LSTM" else 2]  # an LSTM's biases have the same gradient
    assert shapes(step, backward[0].outputs) == [(samples, all_gates)] * (3 - states) + [state, *sums]
    assert {step.tensors[i].dtype for operator in (*fused, *backward) for i in operator.tensors()} == {dtype}
    assert step.summary().forward_macs == STEPS * all_gates * (INPUTS + HIDDEN) + HIDDEN * CLASSES
    assert step.summary().parameters == all_gates * (INPUTS + HIDDEN + (2 if bias else 0)) + (HIDDEN + 1) * CLASSES


def test_a_plain_cell_is_in_pieces() -> None:
    step = captured("RNN")
    assert len(named(step, "aten.tanh.default", "forward")) == STEPS


def test_a_cell_on_the_host_runs_there() -> None:
    hosts = nn.LSTMCell(4, 4)
    found: list[torch.Tensor] = []

    class WithHost(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                found.append(hosts(torch.ones(2, 4, device="cpu"))[0])
            return super().forward(x).sum()

    tbdsim.capture(WithHost(4, 4), torch.empty(1, 4))
    assert torch.equal(found[-1], hosts(torch.ones(2, 4))[0])
