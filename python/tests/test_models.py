"""Whole networks: counts of operators, parameters, multiply-adds and attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import nn

import tbdsim
from tbdsim.macs import multiply_adds
from tbdsim.step import Step

IMAGES = torch.empty(1, 3, 224, 224, device="meta")


def tokens(length: int):  # noqa: ANN201
    def inputs(batch: int) -> dict[str, torch.Tensor]:
        return {name: torch.empty(batch, length, dtype=torch.int64) for name in ("input_ids", "labels")}

    return inputs


def counts(step: Step, phase: str) -> Counter[str]:
    return Counter(operator.name.split(".")[1] for operator in step.operators if operator.phase == phase)


@pytest.fixture(scope="module")
def resnet50() -> Step:
    timm = pytest.importorskip("timm")
    return tbdsim.capture(lambda: timm.create_model("resnet50"), IMAGES, loss="cross_entropy", optimizer="momentum")


def test_resnet50_operators(resnet50: Step) -> None:
    forward, backward = counts(resnet50, "forward"), counts(resnet50, "backward")
    assert (forward["convolution"], forward["native_batch_norm"], forward["relu_"]) == (53, 53, 49)
    assert (backward["convolution_backward"], backward["native_batch_norm_backward"], backward["threshold_backward"]) == (
        53,
        53,
        49,
    )
    # a gradient is added where a residual branch ends; each block's sum is in place
    assert (forward["add_"], backward["add"]) == (16 + 53, 16)
    assert counts(resnet50, "update") == {"_foreach_mul_": 1, "_foreach_add_": 2}


def test_resnet50_sums(resnet50: Step) -> None:
    summary = resnet50.summary()
    assert summary.parameters == 25_557_032
    assert summary.forward_macs == 4_089_184_256
    # three times as many but for the gradient of the images
    assert summary.training_macs == 3 * summary.forward_macs - 118_013_952
    by_path = {module.path: module for module in summary.modules}
    assert by_path["conv1"].forward_macs == 118_013_952
    assert by_path["conv1"].output == (1, 64, 112, 112)
    assert by_path["fc"].parameters == 2_049_000
    # 8-byte indices and the fp32 result of max pooling
    assert by_path["maxpool"].activation_bytes == 64 * 56 * 56 * (4 + 8)


def test_resnet50_modules_of_the_backward_pass(resnet50: Step) -> None:
    forward, backward = (
        [resnet50.modules[o.module][0] for o in resnet50.operators if o.name == name]
        for name in ("aten.convolution.default", "aten.convolution_backward.default")
    )
    assert sorted(forward) == sorted(backward) and len(set(forward)) == 53


@pytest.mark.parametrize("dtype, precision", [("f32", "fp32"), ("bf16", "bf16")])
def test_gpt2(dtype: str, precision: str) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=2)
    step = tbdsim.capture(lambda: transformers.GPT2LMHeadModel(config), tokens(64), optimizer="adamw", precision=precision)
    assert (step.sample, step.length) == ("sequence", 64)
    forward = [o for o in step.operators if o.name == "tbdsim.scaled_dot_product_attention"]
    backward = [o for o in step.operators if o.name == "tbdsim.scaled_dot_product_attention_backward"]
    assert len(forward) == len(backward) == 2
    query = step.tensors[forward[0].tensors()[0]]
    assert [query.dtype, *query.shape[1:]] == [dtype, 12, 64, 64]
    assert multiply_adds(step, forward[0]) == 12 * 64 * 64 * (64 + 64)
    # embeddings of 50257 words and 1024 places, twice 7,087,872 weights of a layer, the last normalization; the head is tied
    assert step.summary().parameters == 50257 * 768 + 1024 * 768 + 2 * 7_087_872 + 2 * 768


def test_bert() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(num_hidden_layers=2)
    step = tbdsim.capture(lambda: transformers.BertForMaskedLM(config), tokens(32), optimizer="adamw", precision="fp16")
    forward = counts(step, "forward")
    assert forward["scaled_dot_product_attention"] == 2
    assert forward["gelu"] == 3
    assert forward["native_layer_norm"] == 6
    # one after the embeddings, two in each layer; dropout of attention is a part of attention
    assert forward["native_dropout"] == 5
    assert counts(step, "update")["_local_scalar_dense"] == 1


def test_attention_taken_apart() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(num_hidden_layers=2, attn_implementation="eager")
    step = tbdsim.capture(lambda: transformers.BertForMaskedLM(config), tokens(32), precision="fp32")
    forward = counts(step, "forward")
    assert (forward["bmm"], forward["_softmax"], forward["scaled_dot_product_attention"]) == (4, 2, 0)


@pytest.mark.parametrize(
    "name", ["mobilenetv3_small_050", "vit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "convnext_atto"]
)
def test_timm(name: str) -> None:
    timm = pytest.importorskip("timm")
    step = tbdsim.capture(lambda: timm.create_model(name), IMAGES, loss="cross_entropy", optimizer="adamw", precision="fp16")
    model = timm.create_model(name)
    assert step.summary().parameters == sum(parameter.numel() for parameter in model.parameters())
    assert {storage.name for storage in step.storages if storage.role == "gradient"} == {
        parameter for parameter, value in model.named_parameters() if value.requires_grad
    }


def test_models_of_one_class_keep_their_weights_apart() -> None:
    """Blocks that a step calls one by one, as around checkpoints: frozen ones are known from no optimizer."""

    def train_step(batch: int) -> Callable[[], None]:
        blocks = [nn.Linear(4, 4).requires_grad_(i == 3) for i in range(4)]
        optimizer = torch.optim.SGD(blocks[3].parameters(), lr=0.1)
        x = torch.empty(batch, 4)

        def step() -> None:
            y = x
            for block in blocks:
                y = block(y)
            optimizer.zero_grad()
            y.sum().backward()
            optimizer.step()

        return step

    summary = tbdsim.capture(train_step).summary()
    assert summary.parameters == 4 * (4 * 4 + 4)
    assert [(module.path, module.parameters) for module in summary.modules] == [("", 20), ("Linear", 20), ("Linear 2", 20), ("Linear 3", 20)]
