"""Operators and kernels that libraries write themselves: in Triton, as operators of their own, as tensors of their own classes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import tbdsim
from tbdsim.step import Step

triton = pytest.importorskip("triton")
tl = triton.language


@triton.jit
def _load(pointer, place, mask):  # type: ignore[no-untyped-def]
    return tl.load(pointer + place, mask=mask)


@triton.jit
def _scale(x_pointer, scale_pointer, y_pointer, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    out = y_pointer + place
    tl.store(out, _load(x_pointer, place, mask) * tl.load(scale_pointer), mask=mask)


@triton.jit
def _multiply(a_pointer, b_pointer, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(b_pointer + place, tl.dot(tl.load(a_pointer + place), tl.load(b_pointer + place)))


def captured(change: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Step:
    """Returns the capture of a layer of 4 outputs that `change` changes, given a scale, without a gradient."""

    def train_step(batch: int) -> Callable[[], object]:
        model = nn.Linear(6, 4).cuda()
        scale = torch.ones(1, device="cuda")
        inputs = torch.empty(batch, 6, device="cuda")

        def step() -> None:
            y = model(inputs)
            with torch.no_grad():
                y.data = change(y.detach(), scale)
            y.mean().backward()

        return step

    return tbdsim.capture(train_step)


def test_a_kernel_of_triton_is_an_operator_of_what_it_loads_and_stores() -> None:
    def change(y: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(y)
        _scale[lambda meta: (triton.cdiv(y.numel(), meta["BLOCK"]),)](y, scale, out, y.numel(), BLOCK=128)
        return out

    step = captured(change)
    [kernel] = [operator for operator in step.operators if operator.name == "triton._scale"]
    assert len(kernel.arguments) == 2 and len(kernel.outputs) == 1
    assert kernel.phase == "forward"


def test_a_kernel_of_triton_that_multiplies_matrices_is_an_error() -> None:
    def change(y: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        _multiply[(1,)](y, y, BLOCK=16)
        return y

    with pytest.raises(tbdsim.CaptureError, match="triton._multiply.*multiplies matrices"):
        captured(change)


def test_an_operator_of_a_library_has_what_it_writes_as_its_result() -> None:
    with torch.library._scoped_library("tbdsim_test", "FRAGMENT") as library:
        library.define("update(Tensor gradient, Tensor(a!) parameter, int step) -> ()")
        library.impl("update", lambda *_: None, "Meta")
        counted = [0]

        def change(y: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
            counted[0] += counted[0] + 1  # 1, 3, 7, ...: a library counts its steps
            torch.ops.tbdsim_test.update(scale, y, counted[0])
            return y

        with pytest.warns(UserWarning, match="written as at batch 2"):
            step = captured(change)
    [update] = [operator for operator in step.operators if operator.name.startswith("tbdsim_test.update")]
    assert len(update.outputs) == 1


class _Scaled(torch.Tensor):
    """A matrix that is kept as whole numbers and a scale, as libraries of fp8 and int8 have it."""

    numbers: torch.Tensor
    scale: torch.Tensor

    @staticmethod
    def __new__(cls, numbers: torch.Tensor, scale: torch.Tensor):  # type: ignore[no-untyped-def]
        return torch.Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=scale.dtype, device=numbers.device)

    def __init__(self, numbers: torch.Tensor, scale: torch.Tensor) -> None:
        self.numbers, self.scale = numbers, scale

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["numbers", "scale"], None

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if function is torch.ops.aten.detach.default:
            return cls(args[0].numbers, args[0].scale)
        whole = [a.numbers.to(a.scale.dtype) * a.scale if isinstance(a, cls) else a for a in args]
        return function(*whole, **(kwargs or {}))


def test_a_tensor_of_parts_is_recorded_as_what_its_class_does() -> None:
    def change(y: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        weights = _Scaled(torch.empty(4, 4, dtype=torch.int8, device="cuda"), scale)
        return torch.mm(y, weights)

    found = [operator.name for operator in captured(change).operators]
    place = found.index("aten.mm.default")
    assert found[place - 2 : place] == ["aten._to_copy.default", "aten.mul.Tensor"]
