"""Training scripts as they are written for a GPU: what they ask of it, copy to it and read from it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tbdsim
from tbdsim.step import Step


def names(step: Step) -> list[str]:
    return [operator.name for operator in step.operators]


def scripted(body: Callable[[nn.Module, torch.Tensor, torch.Tensor], object], **options: object) -> Step:
    """Returns the capture of a script that finds its device, copies a batch to it, and then does as `body`."""

    def train_step(batch: int) -> Callable[[], object]:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = nn.Linear(6, 4).to(device)
        images, targets = torch.randn(batch, 6, device="cpu"), torch.zeros(batch, dtype=torch.int64, device="cpu")
        return lambda: body(model, images.to(device), targets.cuda(non_blocking=True))

    return tbdsim.capture(train_step, **options)


def test_a_script_finds_one_gpu_and_copies_its_batch_to_it() -> None:
    step = scripted(lambda model, x, y: F.cross_entropy(model(x), y).backward())
    assert names(step)[:2] == ["aten._to_copy.default", "aten._to_copy.default"]
    image = step.operators[0]
    assert step.storages[step.tensors[image.tensors()[0]].storage].role == "host"
    assert step.storages[step.tensors[image.outputs[0]].storage].role == "activation"


def test_numbers_may_be_read_printed_and_added_up() -> None:
    printed: list[str] = []

    def body(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> object:
        output = model(x)
        loss = F.cross_entropy(output, y)
        loss.backward()
        torch.cuda.synchronize()
        printed.append(f"{loss.item():.3f} {100.0 * output.argmax(1).eq(y).sum().item() / x.shape[0]}")
        return loss.item()

    step = scripted(body)
    assert not step.warnings
    assert names(step).count("aten._local_scalar_dense.default") == 3
    assert names(step).count("tbdsim.synchronize") == 1
    assert all(printed)


@pytest.mark.parametrize("count", [int, round, lambda number: int(number * 2), lambda number: round(max(1, number))])
def test_numbers_that_count_are_errors(count: Callable[[float], int]) -> None:
    with pytest.raises(tbdsim.CaptureError, match="what runs depends on the batch.*by a number that it reads from the GPU"):
        scripted(lambda model, x, y: [model(x) for _ in range(count(model(x).sum().item()))])


def test_data_parallel_models_are_one_process() -> None:
    def train_step(batch: int) -> Callable[[], object]:
        model = nn.parallel.DistributedDataParallel(nn.Linear(6, 4).cuda(), device_ids=[0])
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        images = torch.randn(batch, 6, device="cuda")

        def step() -> None:
            with model.no_sync():
                model(images).sum().backward()
            optimizer.step()

        return step

    step = tbdsim.capture(train_step)
    assert sum(step.parameter_counts().values()) == 6 * 4 + 4


def test_sizes_that_depend_on_data_are_as_large_as_they_can_be() -> None:
    class Chosen(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = super().forward(x)
            return y[y > 0].sum() + y[(y > 0).any(1)].sum()

    with pytest.warns(UserWarning, match=r"aten.nonzero.default in module '' \(Chosen\).*the largest is recorded"):
        step = tbdsim.capture(Chosen(4, 4), torch.empty(1, 4), largest_sizes=True)
    shapes = [step.tensors[operator.outputs[0]].shape for operator in step.operators if operator.name == "aten.index.Tensor"]
    assert [[(size if isinstance(size, int) else tuple(size)) for size in shape] for shape in shapes] == [[(0, 4)], [(0, 1), 4]]


def test_what_loops_over_samples_is_known_at_one_batch() -> None:
    class Loop(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([super(Loop, self).forward(row).sum() for row in x]).sum()

    with pytest.raises(tbdsim.CaptureError, match="what runs depends on the batch"):
        tbdsim.capture(Loop(4, 4), torch.empty(1, 4))
    step = tbdsim.capture(Loop(4, 4), torch.empty(1, 4), batches=[4])
    assert step.captured_with["batches"] == [4]
    assert names(step).count("aten.addmm.default") + names(step).count("aten.mv.default") >= 4


def test_several_targets_are_arguments_of_the_loss() -> None:
    step = tbdsim.capture(
        nn.Linear(4, 3),
        torch.empty(1, 4),
        loss=lambda output, classes, weights: (F.cross_entropy(output, classes, reduction="none") * weights).sum(),
        targets=(torch.zeros(1, dtype=torch.int64), torch.empty(1)),
    )
    assert "aten.nll_loss_forward.default" in names(step)
