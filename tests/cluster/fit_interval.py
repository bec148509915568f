#!/usr/bin/env python3
"""Fits the deviations of simulate/job/interval.cpp to measured steps.

    tests/cluster/fit_interval.py PROGRAM [--runs ../shared/reference/llm/runs.csv]

Predicts the `fit` rows of judge_runs.py and finds the rest R, exchange X and model M of largest likelihood,
ln(measured / predicted) being normal with the variance K^2 + R^2 + (X waits)^2 + M^2 (M of mixtures of experts
only; K: what kernels and GPU explain of the predicted interval) and every set having the same weight. Errors are no
normal draws: the three are then multiplied by the least number with which 80 % of the rows lie within the 80 %
interval. Leaves out one set after another and prints how many of its rows lie within the interval of the others'
fit, and how many `score` rows do within that of all sets (as a sum).
"""
import argparse
import csv
import math
import os
import re
import sys

sys.path.insert(0, os.path.dirname(__file__))
import judge_runs  # noqa: E402

QUANTILE = 1.2816  # 80 % of a normal distribution lie within so many deviations


def samples(program, runs, fit):
    """(set, share of the step that waits, 1 for experts, ln of measured over predicted, K^2) of every row with a time."""
    _, _, _, model, _, rest, exchange = written()
    with open(runs, newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["set"] in judge_runs.SETS and r["use"] == "time"
                and r["gpu"] in judge_runs.GPUS and judge_runs.is_fit(r) == fit]
    predictions = judge_runs.predict(program, rows, [])
    found = []
    for row in rows:
        p = predictions[row["id"]]
        if p["status"] != "ok":
            continue
        step = float(p["step_time"])
        waits = sum(float(p[k]) for k in ("tensor_time", "send_time", "replica_time")) / step
        experts = 1 if row["moe"] else 0
        width = math.log(float(p["tokens_per_second_high"]) / float(p["tokens_per_second_low"])) / 2 / QUANTILE
        kernels = max(0, width**2 - rest**2 - (exchange * waits)**2 - (model * experts)**2)
        found.append((row["set"], waits, experts, math.log(judge_runs.measured_seconds(row) / step), kernels))
    return found


def written():
    """The components that stand in interval.cpp, with which the program predicts."""
    with open(os.path.join(os.path.dirname(__file__), "../../simulate/job/interval.cpp")) as file:
        numbers = re.search(r"kOfLayouts = \{([^}]*)\}", file.read()).group(1)
    return [float(n) for n in numbers.split(",")]


def variance(components, sample):
    rest, exchange, model = components
    return sample[4] + rest**2 + (exchange * sample[1])**2 + (model * sample[2])**2


def loss(components, data):
    counts = {}
    for sample in data:
        counts[sample[0]] = counts.get(sample[0], 0) + 1
    total = 0
    for sample in data:
        v = variance(components, sample)
        total += (math.log(v) + sample[3]**2 / v) / counts[sample[0]]
    return total


def fitted(data):
    """Coordinate search in factors, finer and finer."""
    best = [0.1, 0.5, 0.2]
    least = loss(best, data)
    factor = 1.5
    while factor > 1.002:
        improved = False
        for i in range(len(best)):
            for f in (factor, 1 / factor):
                tried = [b * f if j == i else b for j, b in enumerate(best)]
                value = loss(tried, data)
                if value < least:
                    best, least, improved = tried, value, True
        if not improved:
            factor = math.sqrt(factor)
    return best


def widened(components, data):
    """The components times the least of 1, 1.01, ... with which 80 % of the rows lie within the interval."""
    factor = 1.0
    while sum(inside([c * factor for c in components], data)) < 0.8 * len(data):
        factor += 0.01
    return [c * factor for c in components]


def inside(components, data):
    return [abs(s[3]) <= QUANTILE * math.sqrt(variance(components, s)) for s in data]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--runs", default=os.path.join(os.path.dirname(__file__), "../../../shared/reference/llm/runs.csv"))
    args = parser.parse_args()
    if not os.path.exists(args.runs):
        print(f"{args.runs} is not here; skipped")
        sys.exit(77)
    data = samples(args.program, args.runs, True)
    found = widened(fitted(data), data)
    print("rest {:.3f}, exchange {:.3f}, model {:.3f}".format(*found))
    left_out = []
    for name in judge_runs.SETS:
        rows = [s for s in data if s[0] == name]
        if not rows:
            continue
        others = [s for s in data if s[0] != name]
        hits = inside(widened(fitted(others), others), rows)
        left_out += hits
        print(f"{name:20} {len(rows):4} rows, {100 * sum(hits) / len(hits):3.0f} % inside when left out")
    print(f"left out by set: {100 * sum(left_out) / len(left_out):.0f} % of {len(left_out)}")
    hits = inside(found, samples(args.program, args.runs, False))
    print(f"score rows: {100 * sum(hits) / len(hits):.0f} % of {len(hits)}")


if __name__ == "__main__":
    main()
