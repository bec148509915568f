#!/usr/bin/env python3
"""Times whole training steps of timm's and transformers' networks on the NVIDIA GPU at hand, for captured models to be judged by.

    steps.py -o steps.csv [--seconds 240]

timm: float16 autocast, gradient scaler, SGD with momentum, cudnn.benchmark, images NCHW and NHWC. transformers: random weights, fused
AdamW, parameters in bf16 or bf16 autocast. A row has the median of 20 (10) steps between CUDA events in seconds, and the largest bytes
that PyTorch's allocator allocated and reserved. Ends with 77 without the packages or a GPU.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

COLUMNS = "model layout batch size precision step_s allocated reserved".split()
#: name, batch, pixels
VISION = [
    ("resnet50", 128, 224),
    ("regnety_032", 128, 224),
    ("vit_base_patch16_224", 128, 224),
    ("efficientnet_b0", 128, 224),
    ("inception_v3", 128, 299),
    ("mobilenetv2_100", 128, 224),
    ("convnext_tiny", 128, 224),
    ("hrnet_w18", 64, 224),
    ("densenet121", 128, 224),
    ("vgg16", 128, 224),
    ("resnext50_32x4d", 128, 224),
]
#: name, sequences, tokens, whether the parameters are bf16
LANGUAGE = [("llama3.2_1b", 4, 2048, True), ("gpt2", 16, 1024, False), ("bert_large", 16, 384, False)]

Row = dict[str, Any]


def timed(torch: Any, step: Callable[[], None], steps: int, warm_up: int) -> Row:
    for _ in range(warm_up):
        step()
    torch.cuda.synchronize()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    seconds = [1e-3 * start.elapsed_time(end) for start, end in zip(marks, marks[1:], strict=False)]
    return {
        "step_s": statistics.median(seconds),
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
    }


def vision(torch: Any, name: str, batch: int, size: int, channels_last: bool) -> Row:
    import timm

    layout = torch.channels_last if channels_last else torch.contiguous_format
    model = timm.create_model(name).cuda().train().to(memory_format=layout)
    images = torch.randn(batch, 3, size, size, device="cuda").contiguous(memory_format=layout)
    classes = torch.randint(1000, (batch,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = torch.nn.functional.cross_entropy(model(images), classes)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    row = {"model": name, "layout": "nhwc" if channels_last else "nchw", "batch": batch, "size": size, "precision": "amp_fp16"}
    return row | timed(torch, step, 20, 6)


def language_model(name: str) -> Any:
    import transformers

    if name == "llama3.2_1b":
        config = transformers.LlamaConfig(
            vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
            num_key_value_heads=8, head_dim=64, max_position_embeddings=8192, tie_word_embeddings=True,
        )  # fmt: skip
        return transformers.LlamaForCausalLM, config
    if name == "gpt2":
        return transformers.GPT2LMHeadModel, transformers.GPT2Config()
    config = transformers.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    return transformers.BertForMaskedLM, config


def language(torch: Any, name: str, batch: int, length: int, pure: bool) -> Row:
    make, config = language_model(name)
    config.use_cache = False
    config._attn_implementation = "sdpa"
    model = make(config).cuda().train()
    if pure:
        model = model.to(torch.bfloat16)
    tokens = torch.randint(1000, (batch, length), device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=not pure):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()

    row = {"model": name, "layout": "sdpa", "batch": batch, "size": length, "precision": "bf16_pure" if pure else "bf16"}
    return row | timed(torch, step, 10, 4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", required=True, help="the CSV to write")
    parser.add_argument("--seconds", type=float, default=240, help="no step is begun after so many (default 240)")
    options = parser.parse_args()
    try:
        import timm  # noqa: F401
        import torch
        import transformers  # noqa: F401
    except ImportError as error:
        print(f"steps.py: {error}", file=sys.stderr)
        return 77
    if not torch.cuda.is_available():
        print("steps.py: no NVIDIA GPU", file=sys.stderr)
        return 77
    torch.backends.cudnn.benchmark = True
    jobs: list[tuple[str, Callable[[], Row]]] = [(job[0], lambda job=job: language(torch, *job)) for job in LANGUAGE]
    jobs += [(job[0], lambda job=job, last=last: vision(torch, *job, last)) for job in VISION for last in (False, True)]
    began = time.monotonic()
    with open(options.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for name, job in jobs:
            if time.monotonic() - began > options.seconds:
                break
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            try:
                row = job()
            except RuntimeError as error:  # it does not fit
                print(f"{name}: {str(error)[:200]}", file=sys.stderr)
                continue
            writer.writerow(row)
            file.flush()
            print(f"{name} {row['layout']}: {1e3 * row['step_s']:.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
