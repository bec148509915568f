"""What a program is told of the GPU that "meta" stands for, and what it does by that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import tbdsim
from tbdsim.step import Step


def names(step: Step) -> list[str]:
    return [operator.name for operator in step.operators]


def captured(make: Callable[[], nn.Module], forward: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> Step:
    """Returns the capture of a step that trains what `make` makes by the mean of what `forward` gives of 6 numbers a sample."""

    def train_step(batch: int) -> Callable[[], object]:
        model = make().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        inputs = torch.empty(batch, 6, device="cuda")

        def step() -> None:
            optimizer.zero_grad()
            forward(model, inputs).mean().backward()
            optimizer.step()

        return step

    return tbdsim.capture(train_step)


def layer() -> nn.Module:
    return nn.Linear(6, 4)


def test_a_tensor_is_on_cuda_in_forward_and_backward_pass() -> None:
    seen: list[object] = []

    class Asking(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            seen.append((x.device, x.is_cuda, x.get_device()))
            return x * 2

        @staticmethod
        def backward(ctx, gradient):  # type: ignore[no-untyped-def]
            seen.append((gradient.device, gradient.is_cuda, gradient.get_device()))
            return gradient * torch.full((1,), 2.0, device="cuda")

    step = captured(layer, lambda model, x: Asking.apply(model(x)))
    assert set(seen) == {(torch.device("cuda", 0), True, 0)}
    assert [o.phase for o in step.operators if o.name == "aten.full.default"] == ["backward"]
    assert torch.empty(1, device="meta").device.type == "meta"  # behind the capture


def test_a_device_that_a_program_keeps_is_cuda() -> None:
    device = torch.device("cuda")

    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        assert device.type == "cuda" and torch.device("cuda").type == "cuda"
        return model(x) + torch.ones(4).pin_memory().to(device, non_blocking=True)

    assert names(captured(layer, forward)).count("aten._to_copy.default") == 1


def test_the_default_device_may_be_cuda() -> None:
    def train_step(batch: int) -> Callable[[], object]:
        model = layer()
        return lambda: model(torch.empty(batch, 6)).mean().backward()

    torch.set_default_device("cuda")
    try:
        found = names(tbdsim.capture(train_step))
    finally:
        torch.set_default_device(None)
    assert found[0] == "aten.empty.memory_format" and "aten.addmm.default" in found


def test_a_generator_of_the_gpu_is_an_argument_like_any() -> None:
    generator: list[torch.Generator] = []

    def make() -> nn.Module:
        generator.append(torch.Generator(device="cuda").manual_seed(0))
        assert isinstance(generator[-1], torch.Generator)
        return layer()

    step = captured(make, lambda model, x: model(x + torch.randn(x.shape, generator=generator[-1], device=x.device)))
    [noise] = [o for o in step.operators if o.name == "aten.randn.generator"]
    assert noise.arguments[1] == "Generator"


def test_a_block_that_is_computed_again_finds_the_same_devices() -> None:
    class Positions(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x + torch.arange(6, device=x.device)).tanh()

    step = captured(lambda: Positions(6, 4), lambda model, x: checkpoint(model, x, use_reentrant=False))
    assert [o.phase for o in step.operators if o.name == "aten.tanh.default"] == ["forward", "backward"]


def test_properties_memory_and_random_state_of_the_gpu_are_there() -> None:
    def make() -> nn.Module:
        properties = torch.cuda.get_device_properties(0)
        assert (properties.major, properties.minor) == torch.cuda.get_device_capability()
        free, total = torch.cuda.mem_get_info()
        assert free <= total == properties.total_memory
        torch.cuda.set_rng_state(torch.cuda.get_rng_state())
        with torch.cuda.device(0), torch.cuda.nvtx.range("model"):
            return layer()

    assert "aten.addmm.default" in names(captured(make, lambda model, x: model(x)))


def test_numbers_of_python_are_copied_from_the_host() -> None:
    step = captured(layer, lambda model, x: model(x) * torch.tensor([1.0, 2.0, 3.0, 4.0], device=x.device))
    [copy] = [operator for operator in step.operators if operator.name == "aten._to_copy.default"]
    assert step.storages[step.tensors[copy.arguments[0].index].storage].role == "host"


def test_nothing_is_copied_of_an_empty_tensor() -> None:
    step = captured(layer, lambda model, x: torch.cat([torch.tensor([], device=x.device), model(x).flatten()]))
    assert "aten._to_copy.default" not in names(step)


def test_a_teacher_in_inference_mode_runs_the_same_operators() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            taught = model(x)
        return model(x) - taught.clone()

    assert names(captured(layer, forward))[:4] == ["aten.t.default", "aten.addmm.default"] * 2


def test_an_operator_with_a_kernel_of_its_own_stays_one() -> None:
    assert "aten.silu_backward.default" in names(captured(layer, lambda model, x: torch.nn.functional.silu(model(x))))


def test_numbers_that_are_known_may_be_read_while_a_step_is_built() -> None:
    class Spread(nn.Linear):
        def __init__(self) -> None:
            super().__init__(6, 4)
            places = torch.linspace(0, 5, 6)
            self.width = (places[1] - places[0]).item()
            self.table = torch.tensor([1.0, 2.0]).cpu().tolist()

    def make() -> nn.Module:
        model = Spread()
        assert model.width == 1.0 and model.table == [1.0, 2.0]
        return model

    assert "aten.addmm.default" in names(captured(make, lambda model, x: model(x)))


def test_numbers_that_are_not_known_are_an_error_while_a_step_is_built() -> None:
    def train_step(batch: int) -> Callable[[], object]:
        model = layer()
        scale = 1.0 if torch.allclose(model.weight, model.weight + 1) else 2.0
        return lambda: (model(torch.empty(batch, 6, device="cuda")) * scale).mean().backward()

    with pytest.raises(tbdsim.CaptureError, match=r"aten.allclose.*before the step runs.*torch.device\(\"cpu\"\)"):
        tbdsim.capture(train_step)
    assert "aten.addmm.default" in names(tbdsim.capture(train_step, assumed_value=0))
