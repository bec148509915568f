"""Values that a capture knows: what follows from constants, of tensors of which every number is the same or that are small."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

import tbdsim  # noqa: E402


class Asking(torch.nn.Linear):
    """A layer whose output depends on an answer about values."""

    def __init__(self, answer: Callable[[torch.Tensor], object]) -> None:
        super().__init__(4, 4)
        self.answer = answer

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        y = super().forward(x)
        return y if self.answer(x if mask is None else mask) else y.relu()


def operators(answer: Callable[[torch.Tensor], object], inputs: object = None) -> list[str]:
    """The names of the operators of a step that asks; no warning is given."""
    given = torch.zeros(2, 4) if inputs is None else inputs
    step = tbdsim.capture(Asking(answer), given, loss=lambda y: y.sum(), optimizer="sgd")
    assert step.warnings == []
    return [operator.name for operator in step.operators]


def is_true(answer: Callable[[torch.Tensor], object], inputs: object = None) -> bool:
    return "aten.relu.default" not in operators(answer, inputs)


def positions(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(x.shape[1], device=x.device).unsqueeze(0).expand(x.shape[0], -1)


def test_a_mask_of_ones_is_known() -> None:
    assert is_true(lambda x: torch.ones(x.shape[0], 4, device=x.device).to(torch.bool).all())


def test_positions_are_known() -> None:
    # transformers asks this: are sequences packed, whose positions start anew?
    assert is_true(lambda x: ((torch.diff(positions(x), dim=-1) != 1).cumsum(-1)[:, -1] == 0).all())
    assert not is_true(lambda x: (positions(x) < 3).all())


def test_sizes_that_follow_from_known_values() -> None:
    assert is_true(lambda x: torch.nonzero(positions(x)[0] > 1).shape[0] == 2)
    assert is_true(lambda x: positions(x)[0].cpu().tolist() == [0, 1, 2, 3])
    assert is_true(lambda x: x[positions(x) < 3].shape[0] == 3 * x.shape[0])


def test_known_values_are_written_to_known_ones() -> None:
    def answer(x: torch.Tensor) -> bool:
        there = torch.arange(4, device=x.device)
        there = torch.stack([there, torch.zeros_like(there)])[0]
        there[0] = 7
        there.add_(1)
        return int(there[0]) == 8

    assert is_true(answer)


class FirstTokensSelected(torch.nn.Module):
    """Selects the first of four positions by a mask of which it asks whether, and where, it holds, as Longformer does."""

    def __init__(self, of_input: bool) -> None:
        super().__init__()
        self.layer, self.of_input = torch.nn.Linear(4, 4), of_input

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.zeros_like(x)
        mask[:, 0] = x[:, 0] if self.of_input else 1
        y = self.layer(x)
        chosen = y[mask > 0] if (mask > 0).any().item() else y
        halves = torch.div(y.shape[1], 2, rounding_mode="trunc")  # a tensor of the host
        return chosen.sum() + y.view(-1, halves, 2).sum() + y[torch.arange(4, device=x.device) > 2].sum()


def test_a_mask_made_of_sizes_is_known() -> None:
    step = tbdsim.capture(FirstTokensSelected(of_input=False), torch.zeros(4, 4), loss=lambda y: y, optimizer="sgd", batches=[4])
    assert step.warnings == []
    places = [o for o in step.operators if o.name == "aten.nonzero.default"]
    assert [step.tensors[o.outputs[0]].shape for o in places] == [(4, 2), (1, 1)]


def test_a_mask_made_of_inputs_is_not_known() -> None:
    with pytest.raises(tbdsim.CaptureError, match="reads a value from the GPU"):
        tbdsim.capture(FirstTokensSelected(of_input=True), torch.zeros(4, 4), loss=lambda y: y, optimizer="sgd", batches=[4])


def test_a_mask_that_holds_nowhere_writes_nothing() -> None:
    def answer(x: torch.Tensor) -> bool:
        there = torch.ones(2048, 2048, device=x.device)
        there[there == 2] = x[0, 0]
        return bool(there.all())

    assert is_true(answer)


def test_steps_of_an_optimizer_are_known() -> None:
    step = tbdsim.capture(lambda: torch.nn.Linear(4, 4), torch.zeros(2, 4), loss="sum", optimizer="asgd")
    assert step.warnings == []


def test_an_optimizer_may_read_and_is_told_what_is_assumed() -> None:
    with pytest.warns(UserWarning, match="update: it reads a value from the GPU; 1.0 is assumed"):
        step = tbdsim.capture(lambda: torch.nn.Linear(4, 4), torch.zeros(2, 4), loss="sum", optimizer=torch.optim.Adafactor)
    assert [operator.name for operator in step.operators if "lerp" in operator.name]


@pytest.mark.parametrize("make", [torch.ones, torch.empty])
def test_what_was_written_to_is_not_known(make: Callable[..., torch.Tensor]) -> None:
    def answer(x: torch.Tensor) -> torch.Tensor:
        there = make(x.shape, device=x.device)
        there[:, 0] = x[:, 0]
        return there.sum() == 1

    with pytest.raises(tbdsim.CaptureError, match="reads a value from the GPU"):
        operators(answer)


def test_random_numbers_are_not_known() -> None:
    with pytest.raises(tbdsim.CaptureError, match="reads a value from the GPU"):
        operators(lambda x: (torch.randint(9, (4,), device=x.device) == 3).all())


def test_numbers_are_finite() -> None:
    assert is_true(lambda x: torch.isfinite(x).all() and not torch.isnan(x).any())


def test_inputs_that_are_all_the_same_are_known() -> None:
    mask = torch.ones(2, 4, dtype=torch.long)
    assert is_true(lambda mask: mask.all(), (torch.zeros(2, 4), mask))
    assert is_true(lambda mask: mask.all(), lambda batch: (torch.zeros(batch, 4), torch.ones(batch, 4, dtype=torch.long)))


def test_whole_numbers_of_inputs_are_those_of_the_examples_samples() -> None:
    padded = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])
    assert not is_true(lambda mask: mask.all(), (torch.zeros(2, 4), padded))
    assert is_true(lambda mask: mask[:, 3].cpu().tolist() == [0, 1, 0, 1, 0][: mask.shape[0]], (torch.zeros(2, 4), padded))


def test_real_numbers_of_inputs_are_not_known() -> None:
    with pytest.raises(tbdsim.CaptureError, match="reads a value from the GPU"):
        operators(lambda mask: mask.all(), (torch.zeros(2, 4), torch.ones(2, 4)))


def test_data_that_a_step_of_ones_own_makes_are_known() -> None:
    def train_step(batch: int) -> Callable[[], None]:
        model = Asking(lambda mask: mask.all())
        x, mask = torch.zeros(batch, 4), torch.ones(batch, 4, dtype=torch.long)
        return lambda: model(x, mask).sum().backward()

    assert tbdsim.capture(train_step).warnings == []


def test_a_permutation_that_is_scattered_is_known() -> None:
    def inverted(order: torch.Tensor, into: torch.Tensor) -> object:
        into.scatter_(0, order, torch.arange(3, device="cuda"))
        return into[0] == 2

    assert is_true(lambda x: inverted(torch.tensor([1, 2, 0], device="cuda"), torch.empty(3, dtype=torch.int64, device="cuda")))


def test_what_is_written_in_part_is_not_known() -> None:
    def written(into: torch.Tensor) -> object:
        into.scatter_(0, torch.tensor([0, 1, 1], device="cuda"), torch.arange(3, device="cuda"))  # nothing at 2
        return into[0] == 0

    with pytest.raises(tbdsim.CaptureError, match="reads a value"):
        is_true(lambda x: written(torch.empty(3, dtype=torch.int64, device="cuda")))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.floor_divide_(2),  # 0 and 1 become 0, 2 becomes 1
        lambda x: x.clamp_(min=1),
        lambda x: x.index_put_((torch.arange(3, device="cuda"),), torch.ones(3, dtype=torch.int64, device="cuda"), accumulate=True),
    ],
)
def test_what_depends_on_what_was_there_is_not_known(write: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with pytest.raises(tbdsim.CaptureError, match="reads a value"):
        is_true(lambda x: write(torch.empty(3, dtype=torch.int64, device="cuda"))[0] == 0)


def test_sizes_of_known_values_before_the_step() -> None:
    def train_step(batch: int) -> Callable[[], None]:
        layer = torch.nn.Linear(torch.unique(torch.tensor([[0, 1], [0, 1], [2, 1]]), dim=0).shape[0], 4)
        x = torch.empty(batch, 2)
        return lambda: layer(x).sum().backward()

    step = tbdsim.capture(train_step)
    assert sum(step.parameter_counts().values()) == 2 * 4 + 4  # two rows differ


def test_what_the_host_writes_in_place_it_writes_once() -> None:
    """1 + 1, and 3 x 1 in a part of two ones."""
    found: list[list[float]] = []

    class Counted(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            one, there = torch.ones(1, device="cpu"), torch.ones(2, device="cpu")
            one += 1
            there[:1].mul_(3)
            found.append([*one.tolist(), *there.tolist()])
            return super().forward(x).sum()

    tbdsim.capture(Counted(4, 4), torch.empty(1, 4))
    assert found and all(numbers == [2, 3, 1] for numbers in found)
