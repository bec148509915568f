"""What cannot be captured is an error that names the operator and its module, never left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import tbdsim


def failing(function: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> str:
    """Returns the error of a model whose second layer, 'body', computes this function."""

    class Body(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function(self, x)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.body = nn.Linear(4, 4), Body()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(self.fc(x))

    with pytest.raises(tbdsim.CaptureError) as error:
        tbdsim.capture(Model, torch.empty(1, 4), loss="sum")
    return str(error.value)


@pytest.mark.parametrize(
    "function, operator, reason",
    [
        (lambda self, x: x * int(x.sum().item()), "aten.mul", "decides by a number that it reads from the GPU: aten._local"),
        (lambda self, x: x * int(x.detach().sum()), "aten.mul", "decides by a number that it reads from the GPU: aten._local"),
        (lambda self, x: x if x.sum().item() < 50 else -x, "aten.neg", "decides by a number that it reads from the GPU: aten._local"),
        (lambda self, x: x if float(x.sum()) < 50 else -x, "aten.neg", "decides by a number that it reads from the GPU: aten._local"),
        (lambda self, x: x if float(x.sum().item()) < 50 else -x, "aten.neg", "decides by a number that it reads from the GPU: aten._local"),
        (lambda self, x: x if x.sum() > 0 else -x, "aten._local_scalar_dense", "`if tensor:`"),
        (lambda self, x: x[x > 0], "aten.nonzero", "depends on the data"),
        (lambda self, x: x.masked_select(x > 0), "aten.masked_select", "depends on the data"),
    ],
)
def test_values_decide(function: Callable[[nn.Module, torch.Tensor], torch.Tensor], operator: str, reason: str) -> None:
    message = failing(function)
    assert operator in message or "aten.index" in message
    assert "module 'body' (Body)" in message
    assert reason in message


def test_size_that_is_no_line_of_the_batch() -> None:
    message = failing(lambda self, x: (x @ x.t()).exp())
    assert "in module 'body' (Body)" in message
    assert "at batch 2" in message and "expected a + b x batch" in message


def test_control_flow_by_the_batch() -> None:
    message = failing(lambda self, x: x.exp() if x.shape[0] % 2 else x.tanh())
    assert "aten.tanh.default in module 'body' (Body), forward: at batch 3 it is aten.exp.default" in message


def test_number_of_operators_by_the_batch() -> None:
    def many(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        for _ in range(x.shape[0]):
            x = x.exp()
        return x

    assert "what runs depends on the batch" in failing(many)


def test_error_in_the_backward_pass_names_the_module_of_the_forward_pass() -> None:
    class Read(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
            return gradient if ctx.saved_tensors[0].max() > 0 else -gradient

    message = failing(lambda self, x: Read.apply(x))
    assert "module 'body' (Body), backward" in message


def test_assumed_values_are_warnings() -> None:
    class Masked(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) if (x > 0).all() else x.sum()

    with pytest.warns(UserWarning, match=r"_local_scalar_dense.* in module '' \(Masked\), forward: .*; True is assumed"):
        step = tbdsim.capture(Masked(4, 4), torch.empty(1, 4), loss="sum", assumed_value=1)
    assert len(step.warnings) == 1
    assert [o.name for o in step.operators if o.phase == "forward"][-2:] == ["aten.addmm.default", "aten.sum.default"]


def test_values_of_arguments() -> None:
    model, x = nn.Linear(4, 4), torch.empty(1, 4)
    with pytest.raises(ValueError, match="did you mean 'adamw'"):
        tbdsim.capture(model, x, loss="sum", optimizer="adamww")
    with pytest.raises(ValueError, match="precision is 'amp': expected one of fp32"):
        tbdsim.capture(model, x, loss="sum", precision="amp")
    with pytest.raises(ValueError, match="loss is 'nll': expected cross_entropy"):
        tbdsim.capture(model, x, loss="nll")
    with pytest.raises(ValueError, match="batches is"):
        tbdsim.capture(model, x, loss="sum", batches=(2, 3))
    with pytest.raises(tbdsim.CaptureError, match="expected a callable that runs one step"):
        tbdsim.capture(lambda batch: None)


def test_nothing_is_left_behind_by_an_error() -> None:
    failing(lambda self, x: x * int(x.sum()))
    assert torch.empty(2, device="cpu").exp().device.type == "cpu"
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    step = tbdsim.capture(nn.Linear(4, 4), torch.empty(1, 4), loss="sum")
    assert step.operators


@pytest.mark.parametrize("layer", [nn.Embedding, nn.EmbeddingBag])
def test_sparse_gradients(layer: Callable[..., nn.Module]) -> None:
    with pytest.raises(tbdsim.CaptureError, match=r"embedding.* in module '' .*forward: its gradient is sparse.*leave out `sparse=True`"):
        tbdsim.capture(lambda: layer(10, 4, sparse=True), torch.zeros(1, 3, dtype=torch.int64), loss="sum")
    frozen = tbdsim.capture(
        lambda: nn.Sequential(layer(10, 4, sparse=True).requires_grad_(False), nn.Linear(4, 2)),
        torch.zeros(1, 3, dtype=torch.int64),
        loss="sum",
    )
    assert len(frozen.operators) > 0


@pytest.mark.parametrize("layer", [nn.Embedding, nn.EmbeddingBag])
def test_a_sparse_lookup_without_gradients_is_captured(layer: Callable[..., nn.Module]) -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = layer(10, 4, sparse=True), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                found = self.table(x)
            return self.head(found)

    step = tbdsim.capture(Frozen, torch.zeros(1, 3, dtype=torch.int64), loss="sum")
    assert any("embedding" in operator.name for operator in step.operators)


def test_what_the_host_reads_is_made_there() -> None:
    def packed(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        lengths = torch.ones(x.shape[0], dtype=torch.int64, device="cuda")
        return nn.utils.rnn.pack_padded_sequence(x.unsqueeze(1), lengths, batch_first=True).data

    assert '1D CPU int64 tensor' in failing(packed) and 'device="cpu"' in failing(packed)
