"""What a captured step holds, on small networks whose operators, sizes and lifetimes can be told by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import nn

import tbdsim
from tbdsim.step import Affine, Operator, Step, size_at


class Net(nn.Module):
    """3 x 8 x 8 images, one convolution with batch normalization, one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4 * 8 * 8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(torch.relu(self.norm(self.conv(x))).flatten(1))


IMAGES = torch.empty(1, 3, 8, 8)


def captured(**options: object) -> Step:
    return tbdsim.capture(Net, IMAGES, **{"loss": "cross_entropy", "optimizer": "momentum", **options})


def named(step: Step, name: str, phase: str | None = None) -> list[Operator]:
    return [operator for operator in step.operators if operator.name == name and phase in (None, operator.phase)]


def outputs(step: Step, operator: Operator) -> list[tuple[int, ...]]:
    return [step.tensors[i].shape for i in operator.outputs if i >= 0]


def test_operators_phases_and_modules() -> None:
    step = captured()
    count = Counter((operator.name, operator.phase) for operator in step.operators)
    assert count["aten.convolution.default", "forward"] == 1
    assert count["aten.convolution_backward.default", "backward"] == 1
    assert count["aten.native_batch_norm_backward.default", "backward"] == 1
    assert count["aten._foreach_mul_.Scalar", "update"] == 1
    assert not named(step, "aten._foreach_zero_.default")
    paths = {operator.name: step.modules[operator.module][0] for operator in step.operators}
    assert paths["aten.convolution.default"] == paths["aten.convolution_backward.default"] == "conv"
    assert paths["aten.native_batch_norm_backward.default"] == "norm"
    assert step.modules[0] == ("", "Net")
    [threshold] = named(step, "aten.threshold_backward.default")
    assert step.modules[threshold.module][0] == ""


def test_a_step_is_shown_in_one_line() -> None:
    step = captured()
    assert repr(step) == f"<Step 'Net': images in fp32, {len(step.operators)} operators; .summary() has more>"


def test_the_first_convolution_has_no_gradient_of_its_input() -> None:
    [backward] = named(captured(), "aten.convolution_backward.default")
    assert backward.arguments[10] == [False, True, False]
    assert backward.outputs[0] == -1


def test_sizes_grow_with_the_batch() -> None:
    step = captured()
    [convolution] = named(step, "aten.convolution.default")
    tensor = step.tensors[convolution.outputs[0]]
    assert tensor.shape == (Affine(0, 1), 4, 8, 8)
    assert tensor.strides == (256, 64, 8, 1)
    assert step.storages[tensor.storage].bytes == Affine(0, 4 * 4 * 8 * 8)
    assert size_at(step.storages[tensor.storage].bytes, 32) == 32 * 1024


def test_roles() -> None:
    step = captured()
    roles = Counter(storage.role for storage in step.storages)
    assert roles["parameter"] == 5
    assert roles["gradient"] == 5
    assert roles["state"] == 5
    assert roles["buffer"] == 3
    assert {storage.name for storage in step.storages if storage.role == "gradient"} == {
        "conv.weight", "norm.weight", "norm.bias", "fc.weight", "fc.bias",
    }  # fmt: skip
    assert step.parameter_counts() == {"conv.weight": 108, "norm.weight": 4, "norm.bias": 4, "fc.weight": 2560, "fc.bias": 10}


def test_lifetimes() -> None:
    step = captured()
    place = {operator.name: i for i, operator in enumerate(step.operators)}
    convolution = step.operators[place["aten.convolution.default"]]
    saved = step.storages[step.tensors[convolution.outputs[0]].storage]
    # batch normalization reads its input again in its backward pass; then nobody does
    assert saved.made == place["aten.convolution.default"]
    assert saved.freed == place["aten.native_batch_norm_backward.default"]
    gradients = [storage for storage in step.storages if storage.role == "gradient"]
    assert all(storage.made > place["aten.nll_loss_forward.default"] and storage.freed == -1 for storage in gradients)
    assert all((s.made, s.freed) == (-1, -1) for s in step.storages if s.role in ("parameter", "state"))


def test_gradients_filled_with_zeros_are_there_before() -> None:
    step = captured(set_to_none=False)
    assert len(named(step, "aten.zero_.default", "zero")) == 5
    assert all(storage.made == -1 for storage in step.storages if storage.role == "gradient")
    assert len(named(step, "aten.add_.Tensor", "backward")) == 5


def test_views_share_a_storage() -> None:
    step = captured()
    [linear] = named(step, "aten.addmm.default")
    flat = step.tensors[linear.tensors()[1]]
    [relu] = named(step, "aten.relu.default")
    assert flat.shape == (Affine(0, 1), 256)
    assert flat.storage == step.tensors[relu.outputs[0]].storage


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_channels_last(precision: str) -> None:
    step = captured(channels_last=True, precision=precision)
    [convolution] = named(step, "aten.convolution.default")
    [backward] = named(step, "aten.convolution_backward.default")
    assert step.tensors[convolution.outputs[0]].strides == (256, 1, 32, 4)
    assert step.tensors[backward.outputs[1]].strides == (27, 1, 9, 3)
    assert step.tensors[named(step, "aten.native_batch_norm.default")[0].outputs[0]].strides == (256, 1, 32, 4)


def test_gradient_scaler_and_clipping() -> None:
    step = captured(precision="fp16", clip_norm=1.0, optimizer="adamw")
    names = [operator.name for operator in step.operators if operator.phase == "update"]
    unscale = names.index("aten._amp_foreach_non_finite_check_and_unscale_.default")
    norm = names.index("aten._foreach_norm.Scalar")
    read = names.index("aten._local_scalar_dense.default")
    update = names.index("aten._amp_update_scale_.default")
    assert unscale < norm < read < update == len(names) - 1
    assert any(name.startswith("aten._foreach_addcdiv_") for name in names[read:update])
    assert named(captured(precision="bf16"), "aten._amp_update_scale_.default") == []


@pytest.mark.parametrize(
    "optimizer, operator", [("sgd", "_foreach_add_"), ("adam", "_foreach_addcdiv_"), ("fused_adam", "_fused_adam_")]
)
def test_optimizers(optimizer: str, operator: str) -> None:
    assert any(f"aten.{operator}" in o.name for o in captured(optimizer=optimizer).operators if o.phase == "update")


def test_an_optimizer_of_your_own() -> None:
    own = torch.optim.AdamW(Net().parameters(), lr=0.1, fused=True)
    assert any("aten._fused_adamw_" in o.name for o in captured(optimizer=own).operators if o.phase == "update")


def test_own_step_is_the_same_as_that_of_a_model() -> None:
    def train_step(batch: int) -> Callable[[], None]:
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        images = torch.randn(batch, 3, 8, 8, device="cuda")
        labels = torch.zeros(batch, dtype=torch.int64).cuda()

        def step() -> None:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()

        return step

    own, made = tbdsim.capture(train_step, name="Net"), captured(name="Net")
    assert [o[:3] for o in own.operators] == [o[:3] for o in made.operators]
    assert own.storages == made.storages
    assert own.tensors == made.tensors


def test_a_model_is_left_as_it_is() -> None:
    model = Net().eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    tbdsim.capture(model, IMAGES, loss="mean", optimizer="adam")
    assert not model.training
    assert all(parameter.grad is None and parameter.device.type == "cpu" for parameter in model.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_recomputed_activations_are_freed_and_made_again() -> None:
    class Checkpointed(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            from torch.utils.checkpoint import checkpoint

            return self.fc(checkpoint(lambda y: torch.relu(self.norm(self.conv(y))), x, use_reentrant=False).flatten(1))

    step = tbdsim.capture(Checkpointed, IMAGES, loss="cross_entropy")
    assert [o.phase for o in named(step, "aten.convolution.default")] == ["forward", "backward"]


def test_a_complex_weight_is_one_of_four_multiply_adds() -> None:
    class Spectrum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.empty(7, 3, dtype=torch.cfloat))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (torch.fft.rfft(x) @ self.weight).abs()

    step = tbdsim.capture(Spectrum(), torch.empty(1, 12), loss="mean", optimizer="adam")
    assert named(step, "aten.view_as_real.default")  # Adam updates two real numbers of each
    assert step.summary().parameters == 7 * 3 and step.summary().forward_macs == 4 * 7 * 3


def test_gradient_accumulation_has_two_forward_passes() -> None:
    def train_step(batch: int) -> Callable[[], None]:
        model = Net()
        images = torch.empty(batch, 3, 8, 8)

        def step() -> None:
            model.zero_grad()
            for _ in range(2):
                model(images).mean().backward()

        return step

    step = tbdsim.capture(train_step)
    assert [o.phase for o in named(step, "aten.convolution.default")] == ["forward", "forward"]


def test_shapes_worked_out_once_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = captured(precision="fp16")
    monkeypatch.setattr("tbdsim.shapes._kind", lambda operator: "")
    monkeypatch.setattr("tbdsim.shapes.Shapes.run", lambda self, operator, args, kwargs: operator(*args, **kwargs))
    assert captured(precision="fp16") == remembered


@pytest.mark.parametrize("kind, cell, gates", [("RNN", 1, 1), ("LSTM", 2, 4), ("GRU", 3, 3)])
@pytest.mark.parametrize("precision, dtype", [("fp32", "f32"), ("bf16", "bf16")])
def test_recurrent_layers_are_one_operator(kind: str, cell: int, gates: int, precision: str, dtype: str) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = getattr(nn, kind)(16, 32, num_layers=2, batch_first=True)
            self.fc = nn.Linear(32, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(self.layer(x)[0])

    step = tbdsim.capture(Recurrent, torch.empty(1, 7, 16), loss="cross_entropy", precision=precision)
    [forward] = named(step, "aten._cudnn_rnn.default", "forward")
    [backward] = named(step, "aten._cudnn_rnn_backward.default", "backward")
    assert forward.arguments[6:10] == [cell, 32, 0, 2]
    assert step.modules[forward.module] == step.modules[backward.module] == ("layer", kind)
    assert outputs(step, forward)[0] == (Affine(0, 1), 7, 32)
    assert {step.tensors[i].dtype for i in forward.tensors()} == {dtype}
    # seven steps; the second layer reads what the first one makes
    assert step.summary().forward_macs == 7 * gates * 32 * (16 + 32 + 32 + 32) + 7 * 32 * 5


def test_packed_sequences_are_one_operator() -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.LSTM(16, 32, bidirectional=True, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            lengths = torch.full((x.shape[0],), 5, device="cpu")
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return nn.utils.rnn.pad_packed_sequence(self.layer(packed)[0], batch_first=True)[0]

    step = tbdsim.capture(Recurrent, torch.empty(1, 7, 16), loss="sum")
    [forward] = named(step, "aten._cudnn_rnn.default", "forward")
    assert forward.arguments[14] == [Affine(0, 1)] * 5  # samples of each step
    assert outputs(step, forward)[0] == (Affine(0, 5), 64)
    assert len(named(step, "aten._cudnn_rnn_backward.default", "backward")) == 1
    # five of seven steps, two directions of four gates
    assert step.summary().forward_macs == 5 * 2 * 4 * 32 * (16 + 32)


def test_lengths_of_sequences_are_a_warning() -> None:
    def loss(output: torch.Tensor) -> torch.Tensor:
        batch = output.shape[0]
        targets = torch.zeros(batch, 3, dtype=torch.int64)
        return nn.functional.ctc_loss(output.log_softmax(-1).transpose(0, 1), targets.cuda(), [7] * batch, [3] * batch)

    with pytest.warns(UserWarning, match="_ctc_loss.*a list of numbers, one a sample"):
        step = tbdsim.capture(nn.Linear(8, 6), torch.empty(1, 7, 8), loss=loss)
    [backward] = [o for o in step.operators if o.name.startswith("aten._ctc_loss_backward")]
    assert outputs(step, backward) == [(7, Affine(0, 1), 6)]
    # targets are copied from the host: not a part of the GPU's memory before that
    assert ({step.storages[step.tensors[o.tensors()[0]].storage].role for o in named(step, "aten._to_copy.default")}) == {
        "host"
    }
