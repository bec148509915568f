"""Captures the training step of any network of Hugging Face transformers from its config.json:

    python -m tbdsim.hugging_face config.json --seq-len 4096 -o my.step.json.gz
"""

from __future__ import annotations

import argparse
import copy
import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from .capture_step import capture
from .errors import CaptureError
from .step import Step

#: Tokens of a sequence at most where none are asked: a configuration of 128 Ki positions is not trained at that.
LONGEST_BY_DEFAULT = 8192
#: Tokens of an encoder's sequence, and of what follows an image or sound.
SHORT_SEQUENCE = 512
CHOICES = 4  # answers of a ForMultipleChoice
SOUND = 16_000  # samples of a second of sound, of which 10 s are taken
#: transformers' tables of the classes that train a configuration, in the order in which one is chosen where none is named.
TABLES = ("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM", "IMAGE_CLASSIFICATION", "SEMANTIC_SEGMENTATION",
          "AUDIO_CLASSIFICATION")


def capture_config(
    config: str | Path | Any,
    *,
    seq_len: int | None = None,
    image_size: int | None = None,
    attention: str | None = None,
    checkpointing: bool = False,
    optimizer: Any = "adamw",
    precision: str = "bf16",
    **options: Any,
) -> Step:
    """Returns one training step of the network that a configuration of transformers describes, captured without weights.

    config: a config.json, the folder that holds one, or a configuration object. The class is the one that its `architectures`
        names, or where there is none the language model, encoder, translator or classifier of its `model_type`. No code of the
        file is run (`auto_map` is not followed).
    seq_len: tokens of a sequence; by default the configuration's positions, at most 8192, and 512 of encoders.
    image_size: pixels of a side; by default the configuration's.
    attention: "sdpa", "eager", ...: transformers' `attn_implementation`; None: its choice.
    checkpointing: whether activations are computed again (`gradient_checkpointing_enable`).
    optimizer, precision, options: as of `capture`.

    Raises CaptureError for what `capture` cannot record, and for classes whose inputs cannot be told from the configuration (images
    with text); ImportError without transformers; OSError and ValueError for a file that is none.
    """
    transformers = _transformers()
    read = _read(transformers, config)
    network = _class_of(transformers, read)
    read = _for_training(read, attention)
    inputs = _inputs(network, read, seq_len, image_size)

    def build() -> torch.nn.Module:
        model = network(read)
        if checkpointing:
            getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)()
        return model

    options.setdefault("name", _name(config, read))
    options.setdefault("title", network.__name__)
    return capture(build, inputs, optimizer=optimizer, precision=precision, **options)


def _transformers() -> Any:
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise ImportError("a config.json is read by transformers: pip install transformers") from error
    return transformers


def _read(transformers: Any, config: Any) -> Any:
    """Returns the configuration object of a file, of a folder, or a copy of what is one already."""
    if not isinstance(config, (str, Path)):
        return copy.deepcopy(config)
    path = Path(config)
    path = path / "config.json" if path.is_dir() else path
    keys = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(keys, dict):
        raise ValueError(f"{path}: a {type(keys).__name__}; expected a map, as save_pretrained writes it")
    kind = keys.get("model_type")
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    if kind not in known:
        raise ValueError(f"{path}: model_type: {json.dumps(kind)}; expected a model of transformers {transformers.__version__}")
    return known[kind].from_dict(keys)


def _class_of(transformers: Any, config: Any) -> type[torch.nn.Module]:
    """Returns the class that trains a configuration."""
    for name in config.architectures or ():
        found = getattr(transformers, name, None)
        if found is None:
            raise ValueError(f"architectures: {name!r}; expected a class of transformers {transformers.__version__}")
        if {"labels", "start_positions"} & set(inspect.signature(found.forward).parameters):
            return found
    tables = transformers.models.auto.modeling_auto
    for table in TABLES:
        names = getattr(tables, f"MODEL_FOR_{table}_MAPPING_NAMES").get(config.model_type)
        if names:
            return getattr(transformers, names if isinstance(names, str) else names[0])
    raise ValueError(f"model_type: {config.model_type!r}; expected a type that a class of transformers trains by labels, or architectures that names one")


def _for_training(config: Any, attention: str | None) -> Any:
    config.use_cache = False
    if attention is not None:
        config._attn_implementation = attention  # what from_pretrained(attn_implementation=...) sets
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = 0  # classifiers of decoders ask for it
    return config


def _first(config: Any, *keys: str) -> int | None:
    """Returns the first of these keys that is a whole number."""
    return next((value for key in keys if type(value := getattr(config, key, None)) is int and value > 0), None)


def _length(network: type, config: Any, seq_len: int | None) -> int:
    positions = _first(config, "max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "max_target_positions")
    if seq_len is not None:
        if seq_len < 1 or (positions is not None and seq_len > positions):
            raise ValueError(f"seq_len is {seq_len}: expected 1 to the {positions or 'configuration'}{' positions' if positions else chr(39) + 's positions'}")
        return seq_len
    decodes = network.__name__.endswith(("ForCausalLM", "LMHeadModel"))
    return min(positions or LONGEST_BY_DEFAULT, LONGEST_BY_DEFAULT if decodes else SHORT_SEQUENCE)


def _inputs(network: type[torch.nn.Module], config: Any, seq_len: int | None, image_size: int | None) -> dict[str, torch.Tensor]:
    """Returns the example inputs of a class, with what its loss compares to."""
    name, main = network.__name__, network.main_input_name
    if hasattr(config, "vision_config"):
        raise CaptureError(f"{name} takes images with text, whose sizes its configuration does not say: "
                           "tbdsim.capture(lambda: MODEL(config), inputs) with inputs of your own")
    ask = lambda *shape: torch.zeros(*shape, dtype=torch.long)
    if main == "pixel_values":
        side = image_size or _first(config, "image_size") or 224
        labels = ask(1, side, side) if name.endswith("ForSemanticSegmentation") else ask(1)
        return {main: torch.zeros(1, _first(config, "num_channels") or 3, side, side), "labels": labels}
    if main == "input_values":
        labels = ask(1, 32) if name.endswith("ForCTC") else ask(1)
        return {main: torch.zeros(1, 10 * SOUND), "labels": labels}
    length = _length(network, config, seq_len)
    if main == "input_features":
        bins, frames = _first(config, "num_mel_bins") or 80, 2 * (_first(config, "max_source_positions") or 1500)
        return {main: torch.zeros(1, bins, frames), "labels": ask(1, length)}
    if main != "input_ids":
        raise CaptureError(f"{name} takes {main}: tbdsim.capture(lambda: MODEL(config), inputs) with inputs of your own")
    if name.endswith("ForQuestionAnswering"):
        return {main: ask(1, length), "start_positions": ask(1), "end_positions": ask(1)}
    if name.endswith("ForMultipleChoice"):
        return {main: ask(1, CHOICES, length), "labels": ask(1)}
    if name.endswith("ForSequenceClassification"):
        return {main: torch.ones(1, length, dtype=torch.long), "labels": ask(1)}
    given = {main: ask(1, length), "labels": ask(1, length)}
    if name.endswith("ForPreTraining") and "next_sentence_label" in inspect.signature(network.forward).parameters:
        given["next_sentence_label"] = ask(1)
    return given


def _name(config: Any, read: Any) -> str:
    """Returns the file's name, that of its folder for a config.json, or the model's type."""
    if not isinstance(config, (str, Path)):
        return read.model_type
    path = Path(config).absolute()
    return path.name if path.is_dir() else path.parent.name if path.stem == "config" else path.stem


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tbdsim.hugging_face", description="Captures one training step of the network "
                                     "that a config.json of transformers describes: a model for tbd-sim --model.")
    parser.add_argument("config", type=Path, help="a config.json, or its folder")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the step file to write, as my.step.json.gz")
    parser.add_argument("--seq-len", type=int, help="tokens of a sequence (default: the configuration's, at most 8192; encoders 512)")
    parser.add_argument("--image-size", type=int, help="pixels of a side (default: the configuration's)")
    parser.add_argument("--precision", default="bf16", help="fp32, tf32, fp16, bf16, pure_fp16 or pure_bf16 (default bf16)")
    parser.add_argument("--optimizer", default="adamw", help="sgd, momentum, adam, adamw, fused_adamw, ... (default adamw)")
    parser.add_argument("--attention", help="transformers' attn_implementation: sdpa, eager, ...")
    parser.add_argument("--checkpointing", action="store_true", help="compute activations again in the backward pass")
    given = parser.parse_args(arguments)
    try:
        step = capture_config(given.config, seq_len=given.seq_len, image_size=given.image_size, precision=given.precision,
                              optimizer=given.optimizer, attention=given.attention, checkpointing=given.checkpointing)
        step.save(given.output)
    except (CaptureError, ImportError, OSError, ValueError) as error:
        print(f"tbdsim: {error}", file=sys.stderr)
        return 2
    print(step.summary(), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
