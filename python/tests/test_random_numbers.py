"""What random numbers of the host decide is the same at every batch and in every capture."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

import tbdsim  # noqa: E402


class LayerDrop(torch.nn.Module):
    """Leaves out each of 16 layers but the first as often as not, by PyTorch's or Python's random numbers."""

    def __init__(self, of_python: bool) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(16))
        self.of_python = of_python

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers[0](x)
        for layer in self.layers[1:]:
            drawn = random.random() if self.of_python else float(torch.rand([]))
            x = layer(x) if drawn < 0.5 else x
        return x


@pytest.mark.parametrize("of_python", [False, True])
def test_layers_that_are_left_out_are_the_same_at_every_batch(of_python: bool) -> None:
    random.seed(7)
    before = random.getstate()
    steps = [tbdsim.capture(lambda: LayerDrop(of_python), torch.zeros(2, 4), loss="sum", optimizer="sgd") for _ in range(2)]
    assert steps[0].operators == steps[1].operators
    assert random.getstate() == before
