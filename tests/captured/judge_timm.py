#!/usr/bin/env python3
"""Predicts captured timm models beside measured training runs, and prints errors by group.

judge_timm.py TBD_SIM STEPS [FORMAT]

STEPS: a folder of step files, as `calibrate/runs/vision.py capture --set timm_train_pt112` fills it.
FORMAT: nchw (default) or nhwc. Measured: ../shared/reference/vision/runs.csv, set timm_train_pt112 (RTX 3090, AMP, PyTorch 1.12).
A quarter of the graphs (by md5 of arch_key) are `fit`, the others `score`: these are for aggregates alone, of three rows or more.
"""

import csv
import hashlib
import math
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

RUNS = Path(__file__).parents[3] / "shared/reference/vision/runs.csv"
FRAMEWORK = "pytorch_1_12"
LEAST = 3  # score rows of a group that is printed


def predictions(program: str, rows: list[tuple[dict, Path]]) -> list[dict]:
    """Returns what `tbd-sim predict` says of the rows, in their order."""
    table = ["gpu,framework,precision,model,variant,batch_per_gpu,gpus,machines,metric,unit"]
    table += [f"{r['gpu']},{FRAMEWORK},amp,{path},,{r['batch_per_gpu']},1,1,throughput,images/s" for r, path in rows]
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as scenarios:
        scenarios.write("\n".join(table) + "\n")
        scenarios.flush()
        done = subprocess.run([program, "predict", "--scenarios", scenarios.name], capture_output=True, text=True, check=True)
    return list(csv.DictReader(done.stdout.splitlines()))


def ranks(values: list[float]) -> list[int]:
    order = sorted(range(len(values)), key=values.__getitem__)
    rank = [0] * len(values)
    for place, index in enumerate(order):
        rank[index] = place
    return rank


def line(name: str, group: list[dict]) -> str:
    ratios = [row["predicted"] / row["measured"] for row in group]
    errors = [abs(ratio - 1) for ratio in ratios]
    inside = statistics.mean(row["low"] <= row["measured"] <= row["high"] for row in group)
    n = len(group)
    a, b = ranks([row["predicted"] for row in group]), ranks([row["measured"] for row in group])
    rho = 1 - 6 * sum((i - j) ** 2 for i, j in zip(a, b)) / (n * (n * n - 1)) if n > 2 else math.nan
    return (
        f"{name:24} {n:4}  median {statistics.median(errors):6.1%}  mean {statistics.mean(errors):6.1%}  "
        f"bias {statistics.median(ratios) - 1:+6.1%}  rank correlation {rho:.3f}  inside {inside:4.0%}"
    )


def lines_of(rows: list[dict]) -> list[str]:
    """Lines of both parts, then of their families, the largest first; score groups that would show single rows have none."""
    groups: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for row in rows:
        groups[row["part"], ""].append(row)
        groups[row["part"], row["family"]].append(row)
    order = sorted(groups, key=lambda group: (group[1] != "", -len(groups[group]), group))
    return [
        line(f"{part} {family}".strip(), groups[part, family])
        for part, family in order
        if part == "fit" or len(groups[part, family]) >= LEAST
    ]


def main(program: str, steps: str, memory_format: str = "nchw") -> None:
    if not RUNS.exists():
        print(f"skipped: {RUNS} is not there")
        return
    with RUNS.open() as file:
        wanted = [
            r
            for r in csv.DictReader(file)
            if (r["set"], r["use"], r["memory_format"]) == ("timm_train_pt112", "score_time", memory_format)
        ]
    ending = f"fp16.{memory_format}.timm_benchmark.step.json.gz"
    paths = [(r, Path(steps) / f"timm-0.6.7.{r['model']}.{r['image_size']}.{ending}") for r in wanted]
    rows = [(r, path) for r, path in paths if path.exists()]
    if not wanted:
        sys.exit(f"{RUNS} has no row of memory format '{memory_format}'; expected nchw or nhwc")
    if not rows:
        sys.exit(f"{steps}: none of the {len(wanted)} captured steps is here; expected files as {paths[0][1].name}")
    judged = []
    for (r, path), p in zip(rows, predictions(program, rows)):
        if p["status"] != "ok":
            print(f"{path.name}: {p['status']}")
            continue
        fit = int(hashlib.md5(r["arch_key"].encode()).hexdigest(), 16) % 4 == 0
        judged.append(
            {
                "part": "fit" if fit else "score",
                "family": r["family"],
                "measured": float(r["value"]),
                "predicted": float(p["predicted"]),
                "low": float(p["predicted_low"]),
                "high": float(p["predicted_high"]),
            }
        )
    print(f"{len(judged)} of {len(wanted)} rows predicted")
    print("\n".join(lines_of(judged)))


if __name__ == "__main__":
    main(*sys.argv[1:])
