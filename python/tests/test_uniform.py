"""Values that a capture knows: of tensors of which every number is the same, and of small ones made of sizes alone."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import tbdsim  # noqa: E402


class Masked(torch.nn.Module):
    """Leaves out a mask of ones, as models of transformers do, or one that it has written to."""

    def __init__(self, writes: bool) -> None:
        super().__init__()
        self.layer, self.writes = torch.nn.Linear(4, 4), writes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(x.shape[0], 4, device=x.device)
        if self.writes:
            mask[:, 0] = x[:, 0]
        y = self.layer(x)
        return y if mask.to(torch.bool).all() and mask.sum() == mask.numel() else y * mask


def captured(model: torch.nn.Module) -> tbdsim.Step:
    return tbdsim.capture(model, torch.zeros(2, 4), loss=lambda y: y.sum(), optimizer="sgd")


def test_a_mask_of_ones_is_known() -> None:
    assert captured(Masked(writes=False)).warnings == []


def test_what_was_written_to_is_not_known() -> None:
    with pytest.raises(tbdsim.CaptureError, match="reads a value from the GPU"):
        captured(Masked(writes=True))


def test_numbers_are_finite() -> None:
    class Checked(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = super().forward(x)
            return y if torch.isfinite(y).all() and not torch.isnan(y).any() else y.clamp(-1, 1)

    assert captured(Checked(4, 4)).warnings == []


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
