#!/usr/bin/env python3
"""Lays predicted steps and kernels beside those that steps.py measured on a GPU.

    judge_steps.py --records calibrate/records/h100_sxm --gpu h100_sxm --captures DIR --program tbd-sim [--only NAME] [--by step|class]

Steps are captured into DIR without a GPU (`pip install tbdsim[capture] timm transformers`) where they are not there yet; detectors of
torchvision are left out. --by step: time of the step, sum of its kernels and memory that PyTorch allocated, predicted over measured - 1;
--by class: milliseconds of all steps of a layout and a precision, measured and predicted, by what the kernels do. Memory is without what
CUDA itself takes on the device. A step whose kernels are much shorter than the step waited for the host.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import steps
from kernel_classes import Row, measured_class, predicted_class

Key = tuple[str, str, str]  # model, layout, precision


def key_of(row: Row) -> Key:
    return row["model"], row["layout"], row["precision"]


def capture(row: Row, path: Path) -> None:
    """Captures the step of a row of steps.csv and saves it."""
    import tbdsim
    import torch

    name, layout, precision, size = row["model"], row["layout"], row["precision"], int(row["size"])
    if layout == "sdpa":
        make, config = steps.language_model(name)
        config.use_cache = False
        config._attn_implementation = "sdpa"
        model, pure = make(config).train(), precision == "bf16_pure"
        tokens = torch.randint(1000, (2, size))
        inputs = {"input_ids": tokens, "labels": tokens}
        options: dict[str, Any] = {"loss": lambda output: output.loss, "optimizer": "fused_adamw", "assumed_value": 1}
        step = tbdsim.capture(
            model.to(torch.bfloat16) if pure else model, inputs, precision="pure_bf16" if pure else precision, **options
        )
    else:
        import timm

        step = tbdsim.capture(
            timm.create_model(name).train(),
            [torch.randn(4, 3, size, size)],
            targets=torch.randint(1000, (4,)),
            loss=torch.nn.functional.cross_entropy,
            optimizer="momentum",
            precision=precision,
            channels_last=layout == "nhwc",
        )
    step.save(path)


def captured(rows: list[Row], folder: Path) -> dict[Key, Path]:
    """The files of the captured steps; those that cannot be captured are named and left out."""
    folder.mkdir(parents=True, exist_ok=True)
    detectors = {name for name, *_ in steps.DETECTORS}
    files: dict[Key, Path] = {}
    for row in rows:
        path = folder / f"{'.'.join(key_of(row))}.step.json.gz"
        if row["model"] in detectors:
            continue
        if not path.exists():
            print(f"capturing {path.name}", file=sys.stderr, flush=True)
            try:
                capture(row, path)
            except (RuntimeError, ImportError) as error:
                print(f"{path.name}: {error}", file=sys.stderr)
                continue
        files[key_of(row)] = path
    return files


@dataclass(frozen=True)
class Judged:
    """A step: milliseconds by class of kernels, and of the step, its kernels (ms) and its memory (GiB) what was measured and predicted."""

    row: Row
    measured: Counter[str]
    predicted: Counter[str]
    pairs: dict[str, tuple[float, float]]


def measured_kernels(path: Path) -> dict[Key, Counter[str]]:
    """Milliseconds of each step by class of kernels."""
    found: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    with gzip.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            found[key_of(row)][measured_class(row)] += float(row["calls"]) * float(row["time_us"]) / 1e3
    return found


def run(program: str, arguments: list[str]) -> str:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def judge(program: str, gpu: str, row: Row, step: Path, measured: Counter[str]) -> Judged:
    where = ["--model", str(step), "--gpu", gpu, "--batch", row["batch"]]
    predicted: Counter[str] = Counter()
    for kernel in csv.DictReader(run(program, ["kernels", *where, "--format", "csv"]).splitlines()):
        predicted[predicted_class(kernel)] += 1e3 * float(kernel["time"]) * float(kernel["repeat"])
    prediction = json.loads(run(program, [*where, "--format", "json"]))["predictions"][0]
    pairs = {
        "step": (1e3 * float(row["step_s"]), 1e3 * prediction["metrics"]["iteration_time"]["value"]),
        "kernels": (measured.total(), predicted.total()),
        "memory": (float(row["allocated"]) / 2**30, prediction["memory"]["model"]["value"] / 2**30),
    }
    return Judged(row, measured, predicted, pairs)


def print_steps(judged: Iterable[Judged]) -> None:
    print("| network | layout | precision | batch | step, ms | error | kernels, ms | error | allocated, GiB | error |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for each in judged:
        row = each.row
        figures = " | ".join(f"{truth:.4g} | {100 * (guess / truth - 1):+.0f} %" for truth, guess in each.pairs.values())
        print(f"| {row['model']} | {row['layout'].upper()} | {row['precision']} | {row['batch']} | {figures} |")


def print_classes(judged: Iterable[Judged]) -> None:
    """The sums over all steps of a layout and a precision, most time first; those below a millisecond are left out."""
    sums: defaultdict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for each in judged:
        for name in each.measured.keys() | each.predicted.keys():
            both = sums[(each.row["layout"], each.row["precision"], name)]
            both[0] += each.measured[name]
            both[1] += each.predicted[name]
    print("| layout | precision | kernels | measured, ms | predicted, ms | ratio |")
    print("|---|---|---|---|---|---|")
    for (layout, precision, name), (truth, guess) in sorted(sums.items(), key=lambda item: (item[0][:2], -item[1][0])):
        if max(truth, guess) >= 1:
            ratio = f"{guess / truth:.2f}" if truth > 0 else ""
            print(f"| {layout.upper()} | {precision} | {name} | {truth:.1f} | {guess:.1f} | {ratio} |")


def print_errors(judged: list[Judged]) -> None:
    for name in judged[0].pairs:
        errors = [abs(guess / truth - 1) for truth, guess in (each.pairs[name] for each in judged)]
        figures = f"median |error| {100 * statistics.median(errors):.1f} %, mean {100 * statistics.mean(errors):.1f} %"
        print(f"{name}: {figures} of {len(errors)}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=Path, required=True, help="the folder with steps.csv and step_kernels.csv.gz")
    parser.add_argument("--gpu", required=True, help="the GPU's name in `tbd-sim list gpus`")
    parser.add_argument("--captures", type=Path, required=True, help="where captured steps are kept")
    parser.add_argument("--program", default="tbd-sim", help="default tbd-sim")
    parser.add_argument("--only", action="append", help="only this network (repeatable)")
    parser.add_argument("--by", choices=("step", "class"), default="step")
    options = parser.parse_args()
    with (options.records / "steps.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if not options.only or row["model"] in options.only]
    measured = measured_kernels(options.records / "step_kernels.csv.gz")
    files = captured(rows, options.captures)
    found = [row for row in rows if key_of(row) in files]
    if not found:
        print("judge_steps.py: no step of these networks is there", file=sys.stderr)
        return 1
    judged = [judge(options.program, options.gpu, row, files[key_of(row)], measured[key_of(row)]) for row in found]
    (print_steps if options.by == "step" else print_classes)(judged)
    print_errors(judged)
    return 0


if __name__ == "__main__":
    sys.exit(main())
