"""Mixed precision: which operators run in which dtype, and casts of weights."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import tbdsim
from tbdsim import autocast_lists
from tbdsim.autocast import overload
from tbdsim.step import Step


def step_of(function: Callable[[torch.Tensor], torch.Tensor], precision: str = "fp16", width: int = 8) -> Step:
    """Returns the step of a function of the output of a linear layer (half under autocast)."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(width, width, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function(self.fc(x))

    return tbdsim.capture(Model, torch.empty(1, width), loss="sum", precision=precision, gradient_scaler=False)


def dtypes(step: Step, name: str, phase: str = "forward") -> list[str]:
    """Returns the dtypes of arguments and outputs of the only operator of that name."""
    [operator] = [o for o in step.operators if o.name.split(".")[1] == name and o.phase == phase]
    return [step.tensors[i].dtype for i in [*operator.tensors(), *operator.outputs]]


def header_list(name: str) -> set[str]:
    header = Path(torch.__file__).parent / "include/ATen/autocast_mode.h"
    if not header.exists():
        pytest.skip("this PyTorch has no headers")
    found = re.search(rf"#define AT_FORALL_{name}\(_\)(.*?)\n\n", header.read_text() + "\n\n", re.DOTALL)
    if found is None:
        pytest.skip(f"this PyTorch's autocast_mode.h has no list {name}")
    entries = re.findall(r"_\((\w+)(?:,\s*(\w+))?\)", found.group(1))
    return {f"{operator}.{which}" if which else operator for operator, which in entries}


@pytest.mark.parametrize(
    "macro, names",
    [
        ("LOWER_PRECISION_FP", autocast_lists.LOWER_PRECISION),
        ("FP32", autocast_lists.FP32),
        ("FP32_SET_OPT_DTYPE", autocast_lists.FP32_OUTPUT),
        ("PROMOTE", autocast_lists.WIDEST),
    ],
)
def test_lists_are_those_of_the_header(macro: str, names: tuple[str, ...]) -> None:
    listed = header_list(macro)
    ours = {name for name in names if overload(name) is not None}
    assert listed - ours == set()
    # what is ours alone stood in the lists of older versions
    assert ours - listed <= {"_prelu_kernel"}


@pytest.mark.parametrize("precision, half", [("fp16", "f16"), ("bf16", "bf16")])
def test_half(precision: str, half: str) -> None:
    step = step_of(lambda y: y, precision)
    assert dtypes(step, "mm") == [half] * 3
    assert dtypes(step, "sum") == [half, "f32"]


def test_fp32_operators_cast_their_arguments() -> None:
    assert dtypes(step_of(torch.exp), "exp") == ["f32", "f32"]
    assert dtypes(step_of(lambda y: nn.functional.layer_norm(y, [8])), "native_layer_norm")[0] == "f32"
    assert dtypes(step_of(lambda y: y.pow(2)), "pow")[0] == "f32"


def test_others_run_as_they_come() -> None:
    assert dtypes(step_of(torch.relu), "relu") == ["f16", "f16"]
    assert dtypes(step_of(torch.tanh), "tanh") == ["f16", "f16"]


def test_softmax_reads_half_and_writes_float() -> None:
    assert dtypes(step_of(lambda y: y.softmax(-1)), "_softmax") == ["f16", "f32"]
    # bf16 is cast before: the fused form is for half alone
    assert dtypes(step_of(lambda y: y.softmax(-1), "bf16"), "_softmax") == ["f32", "f32"]


def test_widest() -> None:
    step = step_of(lambda y: torch.addcmul(y.float(), y, y))
    assert dtypes(step, "addcmul") == ["f32"] * 4


def test_a_weight_is_cast_once_in_a_region() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(8, 8, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(self.fc(x))

    step = tbdsim.capture(Twice, torch.empty(1, 8), loss="sum", precision="fp16", gradient_scaler=False)
    weight = next(i for i, storage in enumerate(step.storages) if storage.name == "fc.weight")
    casts = [o for o in step.operators if o.name == "aten._to_copy.default" and step.tensors[o.tensors()[0]].storage == weight]
    assert len(casts) == 1
    # the region's cache keeps the cast beyond its last use in the forward pass
    cast = step.storages[step.tensors[casts[0].outputs[0]].storage]
    assert step.operators[cast.freed].phase == "backward"


def test_binary_cross_entropy_is_refused() -> None:
    with pytest.raises((RuntimeError, tbdsim.CaptureError), match="unsafe to autocast"):
        step_of(lambda y: nn.functional.binary_cross_entropy(y.sigmoid(), y))


def test_nested_regions() -> None:
    def function(y: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", enabled=False):
            return y.float() @ torch.zeros(8, 8, device=y.device)

    step = step_of(function)
    products = [o for o in step.operators if o.name == "aten.mm.default" and o.phase == "forward"]
    assert [[step.tensors[i].dtype for i in o.outputs] for o in products] == [["f16"], ["f32"]]


def test_autocast_is_as_before_afterwards() -> None:
    step_of(lambda y: y)
    assert not torch.is_autocast_enabled("cuda")
    assert torch.empty(2, 2, device="meta").mm(torch.empty(2, 2, device="meta")).dtype == torch.float32
    with pytest.warns(UserWarning, match="CUDA is not available"):
        torch.autocast("cuda")
