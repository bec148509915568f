#!/usr/bin/env python3
"""The `spread` of each benchmark in simulate/validation/benchmarks/mlperf_training.yaml, from submissions of split fit.

    tests/validation/fit_spread.py PROGRAM [FOLDER]

Needs PyYAML (python3-yaml). FOLDER as in judge_tta.py; without it the script says so and ends. With the logarithms r of
predicted over measured rates and the deviations d that predictions have without a spread (of one GPU at the same batch),
each GPU counting once,

    own^2    = max(0, (q / 1.2816)^2 - mean(d^2)),  q: the smallest that 80 % of |r| do not exceed
    spread^2 = (GPUs * own^2 + 2 * pooled^2) / (GPUs + 2)

`pooled^2` is the mean of own^2 over benchmarks, weighted by their GPUs: the spread of a network that nobody submitted. A
benchmark whose median is off by more than EXPLAINED is not part of it: that is a mechanism that is not modelled.
"""
import json
import math
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import yaml
from judge_tta import rates_alone, submissions

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "simulate/validation/benchmarks/mlperf_training.yaml"
EIGHTY = 1.2816  # standard deviations
SHRINKAGE = 2    # GPUs
EXPLAINED = 0.3


def framework_spread(name: str) -> float:
    """`spread` of a framework's file, or of the one it is based on."""
    framework = yaml.safe_load((ROOT / f"simulate/frameworks/{name}.yaml").read_text(encoding="utf-8"))
    return framework["spread"] if "spread" in framework else framework_spread(framework["based_on"])


def deviation(program: str, row: dict, rules: dict) -> float | None:
    """Standard deviation of ln(rate) of one GPU, without the framework's spread."""
    benchmark = rules["benchmarks"][row["benchmark"]]
    samples = round(float(row["global_batch"]) / benchmark.get("tokens_per_sample", 1))
    options = {name: benchmark[name] for name in ("model", "variant", "framework")}
    options |= {"gpu": row["gpu"], "precision": rules["precisions"][row["precision"] or "unknown"],
                "batch": str(max(1, round(samples / int(row["gpus"]))))}
    if length := benchmark.get("sizes", {}).get("sequence_length"):
        options["seq-len"] = str(length)
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    done = subprocess.run([program, *words, "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    metrics = json.loads(done.stdout)["predictions"][0]["metrics"]
    total = math.log(metrics["throughput_high"]["value"] / metrics["throughput"]["value"]) / EIGHTY
    return math.sqrt(max(0.0, total**2 - framework_spread(benchmark["framework"]) ** 2))


def own_square(points: list[tuple]) -> float:
    rows_of = defaultdict(int)
    for _, _, gpu in points:
        rows_of[gpu] += 1
    weighted = sorted((abs(ratio), 1 / rows_of[gpu]) for ratio, _, gpu in points)
    reached, q = 0.0, 0.0
    for q, weight in weighted:
        reached += weight
        if reached >= 0.8 * len(rows_of) - 1e-9:
            break
    return max(0.0, (q / EIGHTY) ** 2 - statistics.mean(d * d for _, d, _ in points))


def main() -> None:
    program = sys.argv[1]
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "../shared/reference/tta"
    if not (folder / "tta_systems.csv").exists():
        print(f"{folder}: no measured runs here; nothing is fitted")
        return
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    points = defaultdict(list)
    for row in submissions(folder):
        if row["split"] != "fit" or "framework" not in rules["benchmarks"].get(row["benchmark"], {}):
            continue  # decoders that are divided have intervals of their own
        ratio, apart = rates_alone(program, row), deviation(program, row, rules)
        if ratio is not None and apart is not None:
            points[row["benchmark"]].append((math.log(ratio), apart, row["gpu"]))
    squares = {name: (own_square(rows), len({gpu for _, _, gpu in rows})) for name, rows in points.items()}
    explained = {name for name, rows in points.items() if abs(statistics.median(r for r, _, _ in rows)) <= EXPLAINED}
    pooled = sum(squares[name][0] * squares[name][1] for name in explained) / sum(squares[name][1] for name in explained)
    print(f"of a framework: spread: {math.sqrt(pooled):.2f}")
    for name, (own, gpus) in sorted(squares.items()):
        spread = math.sqrt((gpus * own + SHRINKAGE * pooled) / (gpus + SHRINKAGE))
        inside = statistics.mean(abs(r) <= EIGHTY * math.hypot(d, spread) for r, d, _ in points[name])
        print(f"{name:20} {len(points[name]):3} rows, {gpus} GPUs: spread: {spread:.2f}; {100 * inside:.0f} % of rates within")


if __name__ == "__main__":
    main()
