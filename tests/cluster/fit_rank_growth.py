#!/usr/bin/env python3
"""Fits how steps grow with the number of ranks to measured runs that differ in nothing else.

    tests/cluster/fit_rank_growth.py PROGRAM [--runs ../shared/reference/llm/runs.csv]

Groups are runs of the `fit` rows of one set with the same network, GPU, precision, tensor, pipeline and context
ranks, sequence, micro-batch and recomputation: they differ in replicas and gradient accumulation. Within a group
log(measured / predicted without waiting for the slowest rank) is regressed on the passes' share of the step times
the expected largest of as many normal draws as there are ranks; whatever is wrong for the whole group cancels. The
slope is the spread of ranks (simulate/communication/sync_timeline.h, kRankSpread, has 0.012).
"""
import argparse
import csv
import math
import os
import statistics
import sys

import judge_runs

SAME = ("set", "gpu", "model", "tp", "pp", "cp", "micro_batch", "seq_len", "recompute", "precision", "version")


def expected_largest(draws):
    """Of so many draws from a normal distribution (Blom 1958), as the program has it."""
    return statistics.NormalDist().inv_cdf((draws - 0.375) / (draws + 0.25)) if draws > 1 else 0.0


def points_of(rows, predictions):
    """(x, y) of each run, by group."""
    groups = {}
    for row in rows:
        p = predictions[row["id"]]
        if p["status"] != "ok":
            continue
        largest = expected_largest(int(float(row["gpus"])))
        without = float(p["step_time"]) - float(p["slowest_time"])
        passes = float(p["slowest_time"]) / (0.012 * largest) if largest else without
        point = (largest * passes / without, math.log(judge_runs.measured_seconds(row) / without), row["gpus"])
        groups.setdefault(tuple(row[k] for k in SAME), []).append(point)
    return {k: v for k, v in groups.items() if len({gpus for _, _, gpus in v}) > 1}


def slope_of(groups):
    """Slope and its standard error; none with fewer runs than unknowns."""
    xs, ys = [], []
    for points in groups:
        mean_x, mean_y = (statistics.mean(p[i] for p in points) for i in (0, 1))
        xs += [p[0] - mean_x for p in points]
        ys += [p[1] - mean_y for p in points]
    free = len(xs) - len(groups) - 1
    if free < 1:
        return None
    square = sum(x * x for x in xs)
    slope = sum(x * y for x, y in zip(xs, ys)) / square
    rest = sum((y - slope * x) ** 2 for x, y in zip(xs, ys))
    return slope, math.sqrt(rest / free / square), len(xs), len(groups)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--runs", default=os.path.join(os.path.dirname(__file__), "../../../shared/reference/llm/runs.csv"))
    args = parser.parse_args()
    if not os.path.exists(args.runs):
        print(f"{args.runs} is not here; skipped")
        sys.exit(77)
    with open(args.runs, newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["set"] in judge_runs.SETS and r["use"] == "time"
                and judge_runs.is_fit(r) and r["gpu"] in judge_runs.GPUS]
    groups = points_of(rows, judge_runs.predict(args.program, rows, []))
    for name in judge_runs.SETS:
        fitted = slope_of([points for key, points in groups.items() if key[0] == name])
        if fitted:
            print("{:20} {:+.3f} +- {:.3f} of {} runs in {} groups".format(name, *fitted))


if __name__ == "__main__":
    main()
