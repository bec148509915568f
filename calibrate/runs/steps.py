#!/usr/bin/env python3
"""Times whole training steps of networks of timm, torchvision and transformers on the NVIDIA GPU at hand, for captured models to be
judged by, and writes the kernels of each step.

    steps.py -o steps.csv [--kernels kernels.csv.gz] [--seconds 240] [--only NAME]

Images: autocast with a gradient scaler, TF32 or fp32, SGD with momentum, cudnn.benchmark, NCHW and NHWC. transformers: random weights,
fused AdamW, parameters in bf16 or bf16 autocast. A row has the median of 20 (10) steps between CUDA events in seconds, the largest bytes
that PyTorch's allocator allocated and reserved, and the SM clock and the board's power while they ran. Ends with 77 without the packages or a GPU.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from step_kernels import KERNEL_COLUMNS, kernel_rows

COLUMNS = "model layout batch size precision step_s allocated reserved clock_mhz power_w".split()
#: name, batch, pixels, and the precisions and layouts beside float16 in both layouts
VISION: list[tuple[str, int, int, list[tuple[str, str]]]] = [
    ("resnet50", 128, 224, [("bf16", "nchw"), ("bf16", "nhwc"), ("tf32", "nchw"), ("tf32", "nhwc"), ("fp32", "nchw")]),
    ("regnety_032", 128, 224, [("tf32", "nchw"), ("bf16", "nhwc")]),
    ("convnext_tiny", 128, 224, [("tf32", "nchw"), ("bf16", "nhwc")]),
    ("efficientnet_b0", 128, 224, [("bf16", "nchw"), ("bf16", "nhwc"), ("tf32", "nchw"), ("fp32", "nchw")]),
    ("resnext50_32x4d", 128, 224, [("bf16", "nchw"), ("tf32", "nchw"), ("tf32", "nhwc"), ("fp32", "nchw")]),
    ("inception_v3", 128, 299, [("bf16", "nchw"), ("tf32", "nchw")]),
    ("densenet121", 128, 224, [("tf32", "nchw")]),
    ("vgg16", 128, 224, [("tf32", "nchw")]),
    ("mobilenetv2_100", 128, 224, [("tf32", "nchw")]),
    ("vit_base_patch16_224", 128, 224, [("tf32", "nchw")]),
    ("swin_tiny_patch4_window7_224", 128, 224, []),
    ("hrnet_w18", 64, 224, []),
    ("efficientnetv2_rw_s", 64, 288, []),
    ("mobilenetv3_large_100", 128, 224, []),
    ("ghostnet_100", 128, 224, []),
    ("seresnet50", 128, 224, []),
    ("resnetv2_50", 128, 224, []),
    ("mixer_b16_224", 128, 224, []),
]
#: name in torchvision.models.detection, images, pixels, precision
DETECTORS = [
    ("fasterrcnn_resnet50_fpn", 4, 800, "tf32"),
    ("retinanet_resnet50_fpn", 8, 800, "fp16"),
    ("ssd300_vgg16", 32, 300, "fp16"),
    ("maskrcnn_resnet50_fpn", 4, 800, "fp16"),
]
#: name, sequences, tokens, precision (bf16_pure: the parameters are bf16)
LANGUAGE = [
    ("llama3.2_1b", 4, 2048, "bf16_pure"),
    ("gpt2", 16, 1024, "bf16"),
    ("gpt2", 8, 1024, "fp32"),
    ("bert_large", 16, 384, "bf16"),
    ("bert_large", 16, 384, "fp16"),
    ("bert_large", 8, 384, "tf32"),
]

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
    board = {"clock_mhz": torch.cuda.clock_rate(), "power_w": torch.cuda.power_draw() / 1000}
    torch.cuda.synchronize()
    seconds = [1e-3 * start.elapsed_time(end) for start, end in zip(marks, marks[1:], strict=False)]
    return {
        "step_s": statistics.median(seconds),
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
    } | board


def set_tf32(torch: Any, on: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def autocast(torch: Any, precision: str) -> Any:
    """The context of the forward pass in `precision`; TF32 is set beside it."""
    return torch.autocast("cuda", torch.float16 if precision == "fp16" else torch.bfloat16, enabled=precision in ("fp16", "bf16"))


def scaled_step(torch: Any, model: Any, loss_of: Callable[[], Any], precision: str) -> Callable[[], None]:
    """A step of SGD with momentum on the loss of `loss_of`, with a gradient scaler in float16."""
    set_tf32(torch, precision == "tf32")
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-5, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", enabled=precision == "fp16")

    def step() -> None:
        optimizer.zero_grad()
        with autocast(torch, precision):
            loss = loss_of()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def vision(torch: Any, name: str, batch: int, size: int, precision: str, layout: str) -> Callable[[], None]:
    import timm

    order = torch.channels_last if layout == "nhwc" else torch.contiguous_format
    model = timm.create_model(name).cuda().train().to(memory_format=order)
    images = torch.randn(batch, 3, size, size, device="cuda").contiguous(memory_format=order)
    classes = torch.randint(1000, (batch,), device="cuda")
    return scaled_step(torch, model, lambda: torch.nn.functional.cross_entropy(model(images), classes), precision)


def detector(torch: Any, name: str, batch: int, size: int, precision: str) -> Callable[[], None]:
    import torchvision

    make = getattr(torchvision.models.detection, name)
    model = make(weights=None, weights_backbone=None, num_classes=91).cuda().train()
    images = [torch.rand(3, size, size, device="cuda") for _ in range(batch)]
    targets = []
    for _ in range(batch):
        corner = torch.rand(8, 2, device="cuda") * size * 0.5
        boxes = torch.cat([corner, corner + size * 0.05 + torch.rand(8, 2, device="cuda") * size * 0.4], 1)
        masks = torch.zeros(8, size, size, dtype=torch.uint8, device="cuda")
        targets.append({"boxes": boxes, "labels": torch.randint(1, 91, (8,), device="cuda"), "masks": masks})
    return scaled_step(torch, model, lambda: sum(model(images, targets).values()), precision)


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


def language(torch: Any, name: str, batch: int, length: int, precision: str) -> Callable[[], None]:
    make, config = language_model(name)
    config.use_cache = False
    config._attn_implementation = "sdpa"
    model = make(config).cuda().train()
    set_tf32(torch, precision == "tf32")
    if precision == "bf16_pure":
        model = model.to(torch.bfloat16)
    tokens = torch.randint(1000, (batch, length), device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    scaler = torch.amp.GradScaler("cuda", enabled=precision == "fp16")

    def step() -> None:
        optimizer.zero_grad()
        with autocast(torch, precision):
            loss = model(input_ids=tokens, labels=tokens).loss
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


Job = tuple[Row, Callable[[Any], Callable[[], None]], int]


def jobs() -> list[Job]:
    """What a row says of each step, what makes the step, and how many are timed; the first forms of all networks come first."""
    found: list[tuple[int, Job]] = []
    for name, batch, length, precision in LANGUAGE:
        row = {"model": name, "layout": "sdpa", "batch": batch, "size": length, "precision": precision}
        found.append((0, (row, lambda torch, a=(name, batch, length, precision): language(torch, *a), 10)))
    for name, batch, size, more in VISION:
        for place, (precision, layout) in enumerate([("fp16", "nhwc"), ("fp16", "nchw"), *more]):
            row = {"model": name, "layout": layout, "batch": batch, "size": size, "precision": precision}
            found.append((place, (row, lambda torch, a=(name, batch, size, precision, layout): vision(torch, *a), 20)))
    for name, batch, size, precision in DETECTORS:
        row = {"model": name, "layout": "nchw", "batch": batch, "size": size, "precision": precision}
        found.append((2, (row, lambda torch, a=(name, batch, size, precision): detector(torch, *a), 10)))
    return [job for _, job in sorted(found, key=lambda each: each[0])]


def run(torch: Any, options: argparse.Namespace) -> None:
    began = time.monotonic()
    with open(options.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        kernels: list[Row] = []
        for row, make, steps in jobs():
            if time.monotonic() - began > options.seconds:
                break
            if options.only and row["model"] not in options.only:
                continue
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            try:
                step = make(torch)
                writer.writerow(row | timed(torch, step, steps, 4))
                if options.kernels:
                    kernels += [row | kernel for kernel in kernel_rows(torch, step)]
            except RuntimeError as error:  # it does not fit
                print(f"{row}: {str(error)[:200]}", file=sys.stderr)
                continue
            file.flush()
            print(f"{time.monotonic() - began:6.1f} s  {' '.join(str(value) for value in row.values())}", flush=True)
    if options.kernels:
        with gzip.open(options.kernels, "wt", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, KERNEL_COLUMNS)
            table.writeheader()
            table.writerows(kernels)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", required=True, help="the CSV to write")
    parser.add_argument("--kernels", help="write the kernels of each step to this .csv.gz")
    parser.add_argument("--seconds", type=float, default=240, help="no step is begun after so many (default 240)")
    parser.add_argument("--only", action="append", help="only this network (repeatable)")
    options = parser.parse_args()
    try:
        import timm  # noqa: F401
        import torch
        import torchvision  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        print(f"steps.py: {error}", file=sys.stderr)
        return 77
    if not torch.cuda.is_available():
        print("steps.py: no NVIDIA GPU", file=sys.stderr)
        return 77
    torch.backends.cudnn.benchmark = True
    run(torch, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
