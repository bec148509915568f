"""Networks of transformers from a config.json alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tbdsim

transformers = pytest.importorskip("transformers")
hugging_face = pytest.importorskip("tbdsim.hugging_face")

SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
         "num_hidden_layers": 2, "vocab_size": 1000, "max_position_embeddings": 256}


def config_file(folder: Path, **keys: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**SMALL, **keys}), encoding="utf-8")
    return path


def parameters(step: tbdsim.Step) -> int:
    return step.summary().parameters


def test_is_the_class_that_the_file_names(tmp_path: Path) -> None:
    path = config_file(tmp_path, architectures=["LlamaForCausalLM"], model_type="llama")
    step = tbdsim.capture_config(path, seq_len=32)
    # embedding and head, two layers of (q and o 2 x 64^2, k and v 2 x 64 x 32, 3 x 64 x 128, two norms), a norm
    assert parameters(step) == 2 * 1000 * 64 + 2 * (2 * 64**2 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64) + 64
    assert (step.title, step.length, step.sample, step.precision) == ("LlamaForCausalLM", 32, "sequence", "bf16")
    assert step.name == tmp_path.name


def test_is_the_language_model_of_a_type_without_architectures(tmp_path: Path) -> None:
    step = tbdsim.capture_config(config_file(tmp_path, architectures=None, model_type="llama"))
    assert (step.title, step.length) == ("LlamaForCausalLM", 256)


@pytest.mark.parametrize("name, model_type", [
    ("BertForSequenceClassification", "bert"), ("BertForTokenClassification", "bert"), ("BertForQuestionAnswering", "bert"),
    ("BertForMultipleChoice", "bert"), ("BertForPreTraining", "bert"), ("LlamaForSequenceClassification", "llama"),
    ("ViTForImageClassification", "vit")])
def test_takes_the_usual_inputs_of_a_task(tmp_path: Path, name: str, model_type: str) -> None:
    step = tbdsim.capture_config(config_file(tmp_path, architectures=[name], model_type=model_type), seq_len=None if "ViT" in name else 16)
    assert step.title == name
    assert any(operator.phase == "update" for operator in step.operators)


def test_leaves_a_configuration_object_as_it_is() -> None:
    config = transformers.LlamaConfig(**SMALL)
    before = config.to_dict()
    tbdsim.capture_config(config, seq_len=16, attention="eager")
    assert config.to_dict() == before


def test_checkpointing_computes_activations_again(tmp_path: Path) -> None:
    path = config_file(tmp_path, model_type="llama")
    products = lambda step: sum(operator.name.startswith("aten.mm") or "linear" in operator.name for operator in step.operators)
    assert products(tbdsim.capture_config(path, seq_len=16, checkpointing=True)) > products(tbdsim.capture_config(path, seq_len=16))


def test_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='model_type: "lama"; expected'):
        tbdsim.capture_config(config_file(tmp_path, model_type="lama"))
    with pytest.raises(ValueError, match="'NoSuchForCausalLM'; expected a class of transformers"):
        tbdsim.capture_config(config_file(tmp_path, model_type="llama", architectures=["NoSuchForCausalLM"]))
    with pytest.raises(ValueError, match="seq_len is 512: expected 1 to the 256 positions"):
        tbdsim.capture_config(config_file(tmp_path, model_type="llama"), seq_len=512)
    with pytest.raises(tbdsim.CaptureError, match="images with text"):
        tbdsim.capture_config(transformers.LlavaConfig(architectures=["LlavaForConditionalGeneration"]))


def test_writes_a_step_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config_file(tmp_path, model_type="llama")
    out = tmp_path / "my.step.json.gz"
    assert hugging_face.main([str(path), "-o", str(out), "--seq-len", "16"]) == 0
    assert tbdsim.load(out).title == "LlamaForCausalLM"
    assert hugging_face.main([str(tmp_path / "none.json"), "-o", str(out)]) == 2
    assert "none.json" in capsys.readouterr().err
