"""Masks that a step draws on the host, and counters that are made there although a script says no device."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import tbdsim
from tbdsim.drawn_masks import DrawnMasks
from tbdsim.step import Affine, Step

np = pytest.importorskip("numpy")


def count(step: Step, name: str) -> int:
    return sum(operator.name == name for operator in step.operators)


def masked(probability: Callable[[int], float]) -> Callable[[int], Callable[[], None]]:
    """Returns a step that hides frames, 100 a sample, which numpy draws."""

    def train_step(batch: int) -> Callable[[], None]:
        layer, hidden = nn.Linear(8, 8), nn.Parameter(torch.zeros(8))
        optimizer = torch.optim.SGD([*layer.parameters(), hidden], lr=0.1)
        x = torch.empty(batch, 100, 8)

        def step() -> None:
            mask = torch.from_numpy(np.random.rand(batch, 100) < probability(batch)).cuda()
            y = layer(x)
            y[mask] = hidden
            optimizer.zero_grad()
            y[mask].square().sum().backward()
            optimizer.step()

        return step

    return train_step


def test_masks_that_are_drawn_have_as_many_numbers_for_each_sample() -> None:
    with pytest.warns(UserWarning, match="masks are drawn on the host: each sample has as many of their numbers as the mean one at batch 2"):
        step = tbdsim.capture(masked(lambda _: 0.3))
    places = [step.tensors[o.outputs[0]].shape[0] for o in step.operators if o.name == "aten.nonzero.default"]
    state = np.random.RandomState(0)
    drawn = int((state.rand(2, 100) < 0.3).sum())  # of the two samples of the first batch, by the seed of every recording
    assert places and set(places) == {Affine(0, round(drawn / 2))}


def test_masks_that_are_even_are_recorded_once(recwarn: pytest.WarningsRecorder) -> None:
    step = tbdsim.capture(masked(lambda _: 2.0))  # all of them
    assert Affine(0, 100) in [step.tensors[o.outputs[0]].shape[0] for o in step.operators if o.name == "aten.nonzero.default"]
    assert not recwarn.list


def test_places_of_a_mask_that_does_not_grow_are_those_of_the_first_batch() -> None:
    masks = DrawnMasks(even=True)
    masks.batch = 2
    masks.begin()
    assert [masks.count(200, 33), masks.count(7, 3)] == [32, 3]
    masks.batch = 5
    masks.begin()
    assert [masks.count(500, 90), masks.count(7, 4)] == [80, 3]
    assert DrawnMasks().count(200, 33) == 33


def test_adagrad_counts_its_steps_on_the_host() -> None:
    def train_step(batch: int) -> Callable[[], None]:
        layer = nn.Linear(4, 2)
        optimizer = torch.optim.Adagrad(layer.parameters())
        x = torch.empty(batch, 4)

        def step() -> None:
            layer(x).sum().backward()
            optimizer.step()

        return step

    assert count(tbdsim.capture(train_step), "aten._local_scalar_dense.default") == 0


def test_a_number_that_is_read_is_a_factor_of_tensors() -> None:
    """The temperature of soft actor-critic does so: `log_alpha.exp().item() * log_prob`."""

    def train_step(batch: int) -> Callable[[], None]:
        layer, log_alpha = nn.Linear(4, 2), torch.zeros(1, requires_grad=True)
        x = torch.empty(batch, 4)

        def step() -> None:
            alpha = log_alpha.exp().item()
            (1 - alpha * layer(x) - 2 * alpha / (alpha + layer(x))).mean().backward()

        return step

    step = tbdsim.capture(train_step)
    assert count(step, "aten._local_scalar_dense.default") == 1
    assert count(step, "aten.mul.Tensor") >= 1


def test_a_step_that_decides_by_a_number_says_so_beside_drawn_masks() -> None:
    def train_step(batch: int) -> Callable[[], None]:
        layer = nn.Linear(8, 8)
        x = torch.empty(batch, 100, 8)

        def step() -> None:
            mask = torch.from_numpy(np.random.rand(batch, 100) < 0.3).cuda()
            y = layer(x)
            loss = y[mask].sum()
            if loss.item() > 1:
                loss = loss + y.square().sum()
            loss.backward()

        return step

    with pytest.raises(tbdsim.CaptureError, match="decides by a number that it reads from the GPU"):
        tbdsim.capture(train_step)
