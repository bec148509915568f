#!/usr/bin/env python3
"""Predicts measured training runs on clusters and prints errors by set.

    tests/cluster/judge_runs.py PROGRAM [--runs ../shared/reference/llm/runs.csv] [--rows fit|score] [--detail SET]

Rows are split by md5 of their id: a quarter is `fit` (constants may be fitted to it, rows may be looked at), the
rest is `score` (only sums by set are printed). Beside each error stands that of the trivial predictor: one share of
the GPU's peak for each set, GPU and precision, the median of the set's own rows. Without the table it says so and
ends with 77, which tests count as skipped.
"""
import argparse
import csv
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile

from published_jobs import GPUS, job_of, layout_of, number, precision_of, shape_of, stack_of

SETS = ["vtrain_single", "vtrain_multi", "mpt_foundry", "bigscience_a100", "internevo", "dgxc_benchmarking",
        "nemo_2407", "simumax_b200", "torchtitan", "megatron_bridge", "mlperf_pretrain", "mlperf_lora"]
# Networks so small that their times are the host's; of these the memory alone is judged.
MEMORY_SETS = ["mcore_golden"]


def is_fit(row):
    return int(hashlib.md5(row["id"].encode()).hexdigest(), 16) % 4 == 0


def predict(program, rows, extra):
    columns = []
    inputs = []
    for row in rows:
        values = {"id": row["id"], **shape_of(row), **layout_of(row), **stack_of(row), **job_of(row)}
        inputs.append(values)
        columns += [c for c in values if c not in columns]
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "layouts.csv")
        with open(table, "w", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(inputs)
        out = subprocess.run([program, "-q", "plan", "--table", table, *extra], capture_output=True, text=True, check=False)
        if out.returncode != 0:
            sys.exit(out.stderr)
    return {r["id"]: r for r in csv.DictReader(out.stdout.splitlines())}


def measured_seconds(row):
    value = float(row["value"])
    if row["metric"] == "step_time":
        return value
    tokens = float(row["global_batch"]) * float(row["seq_len"])
    if row["metric"] == "tokens_per_s_per_gpu":
        return tokens / (value * float(row["gpus"]))
    if row["metric"] == "tokens_per_s":
        return tokens / value
    return None


def measured_bytes(row):
    return float(row["value"]) * (2**30 if row["unit"].startswith("GiB") else 1e9)


def predicted_bytes(row, p):
    unit = row["unit"].lower()
    kind = "allocated" if "allocated" in unit else "device" if "smi" in unit else "reserved"
    if row["set"] in MEMORY_SETS:  # the last rank writes its own
        return float(p[kind + "_last"])
    return max(float(p[kind + "_first"]), float(p[kind + "_last"]))


def kendall(pairs):
    same = different = 0
    for i, (a, b) in enumerate(pairs):
        for c, d in pairs[:i]:
            sign = (a - c) * (b - d)
            same += sign > 0
            different += sign < 0
    return (same - different) / (same + different) if same + different else float("nan")


def is_inside(row, p):
    """Whether the measured rate is in the predicted 80 % interval."""
    rate = float(row["global_batch"]) * float(row["seq_len"]) / measured_seconds(row)
    return float(p["tokens_per_second_low"]) <= rate <= float(p["tokens_per_second_high"])


def trivial_errors(rows, predictions):
    """Of the constant share of the peak: step = model flops / (share * peak * GPUs), share the set's median."""
    groups = {}
    for row in rows:
        p = predictions[row["id"]]
        if p["status"] != "ok":
            continue
        mfu = float(p["mfu"]) * float(p["step_time"]) / measured_seconds(row)
        groups.setdefault((row["set"], row["gpu"], precision_of(row)), []).append(mfu)
    errors = []
    for shares in groups.values():
        middle = statistics.median(shares)
        errors += [abs(share / middle - 1) for share in shares]
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--runs", default=os.path.join(os.path.dirname(__file__), "../../../shared/reference/llm/runs.csv"))
    parser.add_argument("--rows", choices=["fit", "score"], default="score")
    parser.add_argument("--detail", help="print the rows of this set; with --rows fit only")
    args, extra = parser.parse_known_args()
    if not os.path.exists(args.runs):
        print(f"{args.runs} is not here; skipped")
        sys.exit(77)
    with open(args.runs, newline="") as file:
        rows = [r for r in csv.DictReader(file) if is_fit(r) == (args.rows == "fit")
                and (r["set"] in SETS and r["use"] in ("time", "memory")
                     or r["set"] in MEMORY_SETS and r["use"] == "memory")]
    known = [r for r in rows if r["gpu"] in GPUS]
    predictions = predict(args.program, known, extra)
    print(f"{'set':20} {'rows':>5} {'no':>3}  {'median':>7} {'mean':>7} {'bias':>7} {'tau':>6} {'inside':>7} {'trivial':>8}   memory: rows median bias")
    inside = []
    for name in SETS + MEMORY_SETS:
        here = [r for r in known if r["set"] == name]
        ok = [r for r in here if predictions[r["id"]]["status"] == "ok"]
        times = [r for r in ok if r["use"] == "time"]
        pairs = [(float(predictions[r["id"]]["step_time"]), measured_seconds(r)) for r in times]
        ratios = [p / m - 1 for p, m in pairs]
        memory = [r for r in ok if r["use"] == "memory"]
        sizes = [predicted_bytes(r, predictions[r["id"]]) / measured_bytes(r) - 1 for r in memory]
        trivial = trivial_errors(times, predictions)
        line = f"{name:20} {len(times):5} {len(rows_of(rows, name)) - len(ok):3} "
        if ratios:
            line += (f" {100 * statistics.median(map(abs, ratios)):6.1f}% {100 * statistics.mean(map(abs, ratios)):6.1f}% "
                     f"{100 * statistics.median(ratios):+6.1f}% {kendall(pairs):6.2f} "
                     f"{100 * statistics.mean(is_inside(r, predictions[r['id']]) for r in times):6.0f}% "
                     f"{100 * statistics.median(trivial):7.1f}%")
        if sizes:
            line = line.ljust(82) + f"   {len(sizes):12} {100 * statistics.median(map(abs, sizes)):5.1f}% {100 * statistics.median(sizes):+5.1f}%"
        print(line)
        inside += [is_inside(r, predictions[r["id"]]) for r in times]
        if args.detail == name and args.rows == "fit":
            detail(here, predictions)
    ran = [r for r in known if predictions[r["id"]]["status"] == "ok"]
    lacking = sum(float(predictions[r["id"]]["headroom"]) < 0 for r in ran)
    print(f"{lacking} of {len(ran)} rows that ran are said not to fit; the table has none that ran out of memory")
    print(f"{100 * statistics.mean(inside):.0f} % of {len(inside)} measured rates are inside the 80 % intervals")


def rows_of(rows, name):
    return [r for r in rows if r["set"] == name]


def detail(rows, predictions):
    for row in rows:
        p = predictions[row["id"]]
        if p["status"] != "ok":
            print("    ", row["id"], p["status"])
            continue
        if row["use"] == "memory":
            print(f"     {row['id']:24} {row['value']:>8} {row['unit'][:14]:14} predicted "
                  f"{predicted_bytes(row, p) / 2**30:.1f} GiB, ratio {predicted_bytes(row, p) / measured_bytes(row):.3f}")
            continue
        seconds = measured_seconds(row)
        parts = " ".join(f"{k[:-5]} {float(p[k]):.3g}" for k in p if k.endswith("_time") and k != "step_time")
        print(f"     {row['id']:24} L{number(row['layers'])} h{number(row['hidden'])} s{row['seq_len']} g{number(row['gpus'])} "
              f"dp{number(row['dp'])} tp{number(row['tp'])} pp{number(row['pp'])} vp{number(row['vp'], 1)} "
              f"mb{number(row['micro_batch'])} ga{number(row['grad_accum'], 1)} {row['recompute'][:6]} {precision_of(row)} "
              f"measured {seconds:.4g} predicted {float(p['step_time']):.4g} ratio {float(p['step_time']) / seconds:.3f}; {parts}")


if __name__ == "__main__":
    main()
