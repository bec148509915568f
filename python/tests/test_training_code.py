"""Parts that training code is made of: streams, events, averaged weights, compilers, FlexAttention, CTC, sharding."""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tbdsim
from tbdsim.step import Step


def names(step: Step) -> list[str]:
    return [operator.name for operator in step.operators]


def trained(body: Callable[[nn.Module, torch.optim.Optimizer, torch.Tensor], object], make: Callable[[nn.Module], object] = lambda m: m) -> Step:
    """Returns the capture of a linear layer whose step is `body`, of what `make` makes of the layer."""

    def train_step(batch: int) -> Callable[[], object]:
        model = make(nn.Linear(6, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        inputs = torch.empty(batch, 6, device="cuda")
        return lambda: body(model, optimizer, inputs)

    return tbdsim.capture(train_step)


def plain(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: torch.Tensor) -> None:
    optimizer.zero_grad()
    model(inputs).mean().backward()
    optimizer.step()


def test_streams_and_events_change_no_operator() -> None:
    def timed(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: torch.Tensor) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        side = torch.cuda.Stream()
        begin.record()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            inputs.record_stream(side)
            plain(model, optimizer, inputs)
        torch.cuda.current_stream().wait_stream(side)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    assert names(trained(timed)) == [*names(trained(plain)), "tbdsim.synchronize"]


def test_what_is_compiled_is_captured_as_it_is() -> None:
    eager = names(trained(plain))
    assert names(trained(plain, torch.compile)) == eager
    before = torch.compile(nn.Linear(6, 4))  # outside of the capture
    assert "aten.addmm.default" in names(tbdsim.capture(before, torch.empty(1, 6), loss="mean"))


def test_averaged_weights_are_averaged_and_not_copied() -> None:
    def averaged(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: torch.Tensor) -> None:
        plain(model.module, optimizer, inputs)
        model.update_parameters(model.module)

    def make(model: nn.Module) -> nn.Module:
        return torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))

    step = trained(averaged, make)
    assert names(step).count("aten._foreach_lerp_.Scalar") == 1
    assert names(step).count("aten._local_scalar_dense.default") == 2  # the host reads whether the average exists


@pytest.mark.parametrize("wrap", ["FullyShardedDataParallel", "fully_shard"])
def test_sharded_models_are_for_the_plan(wrap: str) -> None:
    import torch.distributed.fsdp as fsdp

    with pytest.raises(tbdsim.CaptureError, match="--zero 3"):
        trained(plain, lambda model: getattr(fsdp, wrap)(model))


def test_a_model_may_ask_whether_it_is_sharded() -> None:
    import torch.distributed.fsdp as fsdp

    class Asking(nn.Linear):  # as wav2vec 2.0 of transformers does before it leaves out a layer
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if isinstance(self, fsdp.FullyShardedDataParallel) else super().forward(x)

    assert "aten.addmm.default" in names(tbdsim.capture(lambda: Asking(6, 4), torch.empty(1, 6), loss="mean"))


def test_a_number_may_be_a_tensor_of_the_host() -> None:
    class Filled(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = super().forward(x)
            return y.masked_fill(y > 0, torch.tensor(-1.0, device="cpu"))

    assert "aten.masked_fill.Tensor" in names(tbdsim.capture(lambda: Filled(6, 4), torch.empty(1, 6), loss="mean"))


def test_ctc_reads_lengths_on_the_host() -> None:
    class Speech(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(6, 4)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            lengths, targets = (torch.full((x.shape[0],), n, device="cpu") for n in (7, 3))
            return F.ctc_loss(self.out(x).log_softmax(-1).transpose(0, 1), y, lengths, targets)

    with pytest.warns(UserWarning, match="one a sample"):
        step = tbdsim.capture(Speech, {"x": torch.empty(1, 7, 6), "y": torch.zeros(1, 3, dtype=torch.int64)})
    [loss] = [o for o in step.operators if o.name == "aten._ctc_loss.default"]
    assert step.tensors[loss.outputs[1]].shape[1:] == (7, 2 * 3 + 1)


@pytest.mark.parametrize(
    "mask, causal, warned",
    [(None, False, 0), (lambda b, h, q, k: q >= k, True, 0), (lambda b, h, q, k: (q - k).abs() < 4, False, 1)],
)
def test_flex_attention_is_one_kernel(mask: Callable[..., torch.Tensor] | None, causal: bool, warned: int) -> None:
    flex = pytest.importorskip("torch.nn.attention.flex_attention")

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(16, 48)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = self.qkv(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
            blocks = mask and flex.create_block_mask(mask, None, None, 128, 128, device=x.device)
            return flex.flex_attention(q, k, v, block_mask=blocks)

    with pytest.warns(UserWarning, match="mask") if warned else nullcontext():
        step = tbdsim.capture(Attention, torch.empty(1, 128, 16), loss="mean")
    [forward] = [o for o in step.operators if o.name == "tbdsim.scaled_dot_product_attention"]
    assert (causal in forward.arguments) and len(step.warnings) == warned


def test_a_batch_that_is_copied_after_a_backward_pass_is_part_of_a_forward_pass() -> None:
    def train_step(batch: int) -> Callable[[], None]:
        layer = nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        batches = [torch.empty(batch, 4, device="cpu") for _ in range(2)]

        def step() -> None:
            for x in batches:
                layer(x.cuda()).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    step = tbdsim.capture(train_step)
    assert [o.phase for o in step.operators if o.name == "aten._to_copy.default"] == ["forward", "forward"]


@pytest.mark.parametrize(("shape", "phase"), [((4,), "update"), ((2, 6), "forward")])
def test_a_batch_that_is_copied_after_the_backward_pass_ends_the_update(shape: tuple[int, ...], phase: str) -> None:
    """A vector that the host hands to a hand-written update is no batch."""

    def body(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: torch.Tensor) -> None:
        model(inputs).mean().backward()
        copied = torch.ones(shape, device="cpu").to("cuda")
        with torch.no_grad():
            model.bias.sub_(copied.flatten()[:4])

    (update,) = [operator for operator in trained(body).operators if operator.name == "aten.sub_.Tensor"]
    assert update.phase == phase


def test_a_cuda_graph_is_an_error_and_graphed_callables_are_what_they_are() -> None:
    def graphed(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: torch.Tensor) -> None:
        graph: torch.cuda.CUDAGraph | None = None
        assert isinstance(torch.cuda.CUDAGraph | None, types.UnionType)  # as annotations of libraries that are imported in a step
        with torch.cuda.graph(graph or torch.cuda.CUDAGraph()):
            plain(model, optimizer, inputs)

    with pytest.raises(tbdsim.CaptureError, match="pytorch_compiled_graphs"):
        trained(graphed)
    make = lambda model: torch.cuda.make_graphed_callables(model, (torch.empty(2, 6),))
    assert names(trained(plain, make)) == names(trained(plain))
