"""What a step reads from the GPU: numbers that it prints or compares, checks of distributions, closures, line searches, shares."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from math import exp

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tbdsim
from tbdsim.read_number import of_read_numbers
from tbdsim.step import Step


def names(step: Step) -> list[str]:
    return [operator.name for operator in step.operators]


def after(read: Callable[[torch.Tensor], object]) -> Callable[[int], Callable[[], None]]:
    """Returns a step of a linear layer that hands its loss to `read` at the end."""

    def train_step(batch: int) -> Callable[[], None]:
        layer = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        x = torch.empty(batch, 4)

        def step() -> None:
            loss = layer(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            read(loss.detach())

        return step

    return train_step


@pytest.mark.parametrize(
    "read",
    [
        float,
        int,
        lambda loss: loss.item() < 1e9,
        lambda loss: 1.0 if loss.item() else 0.0,
        lambda loss: 7 % loss.item() < 1e9,
        lambda loss: 7 // loss.item() < 1e9,
        lambda loss: divmod(loss.item(), 7)[0] < 1e9,
        lambda loss: loss.item().is_integer(),
        lambda loss: loss.item().as_integer_ratio(),
        lambda loss: math.exp(loss.item()) < 1e9,
        lambda loss: math.exp(loss) < 1e9,
        lambda loss: exp(loss.item()) < 1e9,
        lambda loss: math.fsum([1.0, loss.item()]) < 1e9,
        lambda loss: math.isclose(loss.item(), 1e9),
    ],
)
def test_a_number_may_be_compared_where_the_step_runs_alike(read: Callable[[torch.Tensor], object]) -> None:
    with pytest.warns(UserWarning, match=r"_local_scalar_dense.*others stand for them in each recording, and the step runs alike"):
        step = tbdsim.capture(after(read))
    assert names(step).count("aten._local_scalar_dense.default") == 1 and len(step.warnings) == 1


def test_a_number_that_is_printed_is_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = tbdsim.capture(after(lambda loss: f"{round(loss.item() / 3, 4):.2f} {math.exp(loss.item()):.1f}"))
    assert names(step).count("aten._local_scalar_dense.default") == 2
    assert math.exp(1.0) == pytest.approx(2.718281828) and math.prod(iter([2, 3.5])) == 7  # as before, afterwards


def test_functions_of_math_take_tensors_of_one_number() -> None:
    root = of_read_numbers(math.sqrt)
    assert root(torch.tensor(4.0)) == 2 and root(torch.tensor([9.0])) == 3
    assert of_read_numbers(math.fsum)(iter([1, 2.5])) == 3.5
    assert of_read_numbers(math.dist)(torch.tensor([0.0, 3.0]), torch.tensor([4.0, 0.0])) == 5


@pytest.mark.parametrize("read", [float, int, lambda loss: loss.item() < 1e9, lambda loss: math.exp(loss.item()) < 1e9])
def test_one_batch_cannot_tell_whether_a_number_decides(read: Callable[[torch.Tensor], object]) -> None:
    with pytest.raises(tbdsim.CaptureError, match="_local_scalar_dense"):
        tbdsim.capture(after(read), batches=[4])


def test_arguments_of_distributions_are_valid() -> None:
    class Policy(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            chosen = torch.distributions.Categorical(logits=super().forward(x), validate_args=True)
            return -chosen.log_prob(chosen.sample()).mean()

    step = tbdsim.capture(Policy(4, 3), torch.empty(1, 4))
    assert not step.warnings
    assert names(step).count("aten._local_scalar_dense.default") == 2  # the logits, the sample


@pytest.mark.parametrize("search, evaluations", [(None, 5), ("strong_wolfe", 1 + 5)])
def test_lbfgs_makes_all_its_iterations(search: str | None, evaluations: int) -> None:
    """The loss is evaluated once before the iterations, and in each of the five but, without a line search, the last."""

    def train_step(batch: int) -> Callable[[], object]:
        layer = nn.Linear(4, 2)
        optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=5, max_eval=100, line_search_fn=search)
        x = torch.empty(batch, 4)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = layer(x).square().mean()
            loss.backward()
            return loss

        return lambda: optimizer.step(closure)

    with pytest.warns(UserWarning):
        step = tbdsim.capture(train_step)
    phases = [operator.phase for operator in step.operators if operator.name == "aten.addmm.default"]
    assert phases == ["forward"] * evaluations
    assert any("line search" in warning for warning in step.warnings) == (search is not None)
    assert torch.optim.LBFGS(nn.Linear(2, 2).parameters()).param_groups[0]["tolerance_grad"] == 1e-7


def test_a_share_of_the_largest_size() -> None:
    """Two of four samples' eight places each: half of eight times the batch."""

    class Expert(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            (chosen,) = torch.where(x[..., 0].flatten() > 0)
            return super().forward(x.flatten(0, 1)[chosen]).sum()

    with pytest.warns(UserWarning, match="0.5 of the largest is recorded"):
        step = tbdsim.capture(Expert(4, 3), torch.empty(1, 8, 4), largest_sizes=0.5)
    (product,) = [operator for operator in step.operators if operator.name == "aten.addmm.default"]
    assert [tuple(size) if not isinstance(size, int) else size for size in step.tensors[product.outputs[0]].shape] == [(0, 4), 3]
    with pytest.raises(ValueError, match="largest_sizes is 2: expected True, False, or a share between 0 and 1"):
        tbdsim.capture(Expert(4, 3), torch.empty(1, 8, 4), largest_sizes=2)


class Rows(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return torch.zeros(4), i % 2


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.filterwarnings("error")
def test_a_data_loader_works_on_the_host(pinned: bool) -> None:
    def train_step(batch: int) -> Callable[[], None]:
        layer = nn.Linear(4, 2)
        rows: Iterator[list[torch.Tensor]] = iter(torch.utils.data.DataLoader(Rows(), batch, shuffle=True, pin_memory=pinned))

        def step() -> None:
            x, y = next(rows)
            F.cross_entropy(layer(x.cuda(non_blocking=True)), y.cuda()).backward()

        return step

    step = tbdsim.capture(train_step)
    copies = [operator for operator in step.operators if operator.name == "aten._to_copy.default"]
    assert [step.tensors[operator.outputs[0]].dtype for operator in copies] == ["f32", "i64"]


def test_attention_of_nested_tensors_is_an_error() -> None:
    def train_step(batch: int) -> Callable[[], None]:
        layer = nn.Linear(8, 8)
        rows = [torch.empty(3 + i, 8) for i in range(batch)]

        def step() -> None:
            x = layer(torch.nested.nested_tensor(rows, layout=torch.jagged)).unflatten(-1, (2, 4)).transpose(1, 2)
            F.scaled_dot_product_attention(x, x, x).values().mean().backward()

        return step

    with pytest.raises(tbdsim.CaptureError, match="nested tensors.*pad the sequences"):
        tbdsim.capture(train_step)


@pytest.mark.parametrize("read", [lambda loss: loss.cpu().numpy(), lambda loss: loss.cpu().tolist(), lambda loss: loss.to("cpu")])
def test_numbers_may_be_copied_to_the_host_where_the_step_runs_alike(read: Callable[[torch.Tensor], object]) -> None:
    with pytest.warns(UserWarning, match=r"aten._to_copy.*others stand for them in each recording, and the step runs alike"):
        step = tbdsim.capture(after(read))
    assert len(step.warnings) == 1


def test_sizes_that_are_copied_to_the_host_decide() -> None:
    class Cut(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            longest = (super().forward(x) > 0).sum(-1).max().cpu()
            return super().forward(x)[:, : int(longest)].sum()

    with pytest.raises(tbdsim.CaptureError, match="slice.*decides by a number that it reads from the GPU: aten._to_copy"):
        tbdsim.capture(Cut(8, 8), torch.empty(1, 8))


def test_a_number_is_printed_without_item() -> None:
    printed: list[str] = []
    step = tbdsim.capture(after(lambda loss: printed.append(f"{loss:.2f}")))
    assert not step.warnings and printed[0] == "1.00"
    assert names(step).count("aten._local_scalar_dense.default") == 1


@pytest.mark.parametrize("channels", [False, True])
def test_numbers_are_rounded_as_if_quantized(channels: bool) -> None:
    quantization = pytest.importorskip("torch.ao.quantization")

    class Rounded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 2)
            observer = quantization.MovingAveragePerChannelMinMaxObserver if channels else quantization.MovingAverageMinMaxObserver
            options = {"qscheme": torch.per_channel_symmetric, "dtype": torch.qint8} if channels else {}
            self.rounded = quantization.FakeQuantize(observer, -128 if channels else 0, 127 if channels else 255, **options)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.linear(x, self.rounded(self.fc.weight)).sum()

    with pytest.warns(UserWarning):
        step = tbdsim.capture(Rounded, torch.empty(1, 4), assumed_value=0)
    (rounding,) = [operator for operator in step.operators if "fake_quantize" in operator.name]
    assert [step.tensors[output].dtype for output in rounding.outputs] == ["f32", "bool"]


def test_classes_are_counted() -> None:
    class Counted(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = super().forward(x)
            return y.sum() + torch.bincount(y.argmax(1), minlength=3).sum()

    with pytest.warns(UserWarning, match="aten.bincount.*the largest is recorded"):
        step = tbdsim.capture(Counted(4, 3), torch.empty(1, 4), largest_sizes=True)
    (counts,) = [operator for operator in step.operators if operator.name == "aten.bincount.default"]
    assert step.tensors[counts.outputs[0]].shape == (3,)


def test_parts_whose_sizes_are_read_name_the_place() -> None:
    class Parts(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).split((x > 0).sum(1)[:2].tolist(), 1)[0].sum()

    with pytest.raises(tbdsim.CaptureError, match="split.*decides by a number that it reads from the GPU: aten._to_copy"):
        tbdsim.capture(Parts(4, 4), torch.empty(1, 4))
