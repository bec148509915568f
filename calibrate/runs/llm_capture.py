#!/usr/bin/env python3
"""Captures two-layer transformers of Hugging Face on a machine without a GPU, for tests that compare them with the catalogue's.

    PYTHONPATH=python llm_capture.py --folder tests/captured

Needs PyTorch, transformers and the Python package tbdsim.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import transformers
from tbdsim.capture_step import capture

LENGTH = 1024
LLAMA = transformers.LlamaConfig(
    hidden_size=2048,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=64,
    intermediate_size=8192,
    num_hidden_layers=2,
    vocab_size=128256,
    tie_word_embeddings=True,
)

#: Class, configuration, precision and attention of each, by the name of its file.
STEPS = {
    "transformers.llama_two_layers.pure_bf16.sdpa": (transformers.LlamaForCausalLM, LLAMA, "pure_bf16", "sdpa"),
    "transformers.llama_two_layers.pure_bf16.eager": (transformers.LlamaForCausalLM, LLAMA, "pure_bf16", "eager"),
    "transformers.gpt2_two_layers.fp32.eager": (transformers.GPT2LMHeadModel, transformers.GPT2Config(n_layer=2), "fp32", "eager"),
}


def words(batch: int) -> dict[str, object]:
    """Returns the inputs of a batch: words, the same as labels, and no cache of keys."""
    ids = torch.zeros(batch, LENGTH, dtype=torch.long, device="meta")
    return {"input_ids": ids, "labels": ids.clone(), "use_cache": False}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    for name, (kind, config, precision, attention) in STEPS.items():
        config._attn_implementation = attention

        def build(kind: type = kind, config: transformers.PretrainedConfig = config) -> torch.nn.Module:
            return kind(config).train()

        # A value is read to find sequences packed into one, which there are not: 1 says so.
        step = capture(build, words, optimizer="adam", precision=precision, name=name, assumed_value=1)
        step.save(str(options.folder / f"{name}.step.json.gz"))


if __name__ == "__main__":
    main()
