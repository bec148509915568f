#!/usr/bin/env python3
"""Convolutions of measured steps as records that tbd-calibrate fits: step_records.py STEP_KERNELS.csv[.gz] HEADER.csv -o RECORDS.csv

A call's time is the sum of the kernels of its pass over the calls of a step. A profiler shows the kernels of both
backward passes together; they are told apart by names, and shared helpers (copies, transforms) go to the passes whose main
kernel needs them, in equal parts. Left out: PyTorch's own kernels, one-tap products of cuBLAS, fp32 kernels in steps of TF32,
dense convolutions whose channels are padded, and copies of NCHW images around dense convolutions, which are kernels of their
own in a prediction: dense calls are written as NHWC ones. HEADER.csv is any file of records; its first line names the columns.
"""
import argparse
import collections
import csv
import gzip
import json
import re

COPY = re.compile(r"nchwToNhwc|nhwcToNchw|AddPadding|nhwcSliceC|tensorTransform|convertTensor", re.I)
HELPER = re.compile(r"Memset|Memcpy|splitK|reduce|init_device_workspace|kernel_helper_stage|scaleTensor", re.I)
ONE_BY_ONE = re.compile(r"nhwcSliceC|float, (false, true|true, false)", re.I)
GPU = {"gpu": "NVIDIA H100 80GB HBM3", "generation": "cudnn9", "cache": "cold", "timer": "cupti", "samples": "2",
       "spread": "0.02", "slowdown": "1", "driver": "580.159.04", "cuda": "13.0", "cudnn": "9.19.0", "power_limit_w": "700",
       "memory_clock_hz": "2.619e+09", "sm_clock_hz": "1.98e+09", "source": "steps of PyTorch 2.11"}
PASSES = ("forward", "backward_data", "backward_weights")


def convolution(row):
    """(shape of the call, whether it is of the backward pass); None where the row is of no two-dimensional convolution."""
    operator = row["operator"]
    if operator not in ("aten::cudnn_convolution", "aten::convolution_backward"):
        return None
    backward = operator == "aten::convolution_backward"
    shapes, strides, words = (json.loads(row[k]) for k in ("shapes", "strides", "arguments"))
    x, w = shapes[backward], shapes[backward + 1]
    if len(x) != 4 or (backward and words[7] == "True"):
        return None
    stride, padding, dilation = (json.loads(words[i]) for i in ((4, 5, 6) if backward else (3, 2, 4)))
    groups = int(words[9 if backward else 5])
    last = strides[backward][1] == 1 and x[1] > 1
    return (*x, *w[:1], *w[2:], *stride, *padding, *dilation, groups, last), backward


def main_pass(kernel, backward):
    if not backward:
        return "forward"
    if re.search("wgrad|grad_weight", kernel, re.I):
        return "backward_weights"
    return "backward_data" if re.search("dgrad", kernel, re.I) else None


def precision_of(row):
    return "bf16" if "bf16" in row["precision"] else row["precision"]


def gather(path):
    """{(model, layout, precision, shape): {(backward, kernel): [calls, seconds]}}"""
    steps = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    with gzip.open(path, "rt") if path.endswith("gz") else open(path) as file:
        for row in csv.DictReader(file):
            found = convolution(row)
            if found is None:
                continue
            shape, backward = found
            kernels = steps[row["model"], row["layout"], precision_of(row), shape]
            entry = kernels[backward, row["kernel"]]
            calls = float(row["calls"])
            entry[0] += calls
            entry[1] += calls * float(row["time_us"]) * 1e-6
    return steps


def calls_of_shapes(steps):
    """Calls a step by model and shape, whatever the layout: the fewest launches of a main kernel's pass."""
    fewest = {}
    for (model, _, _, shape), kernels in steps.items():
        launches = collections.Counter()
        for (backward, kernel), (calls, _) in kernels.items():
            if not COPY.search(kernel) and not HELPER.search(kernel) and main_pass(kernel, backward):
                launches[main_pass(kernel, backward)] += calls
        for count in launches.values():
            key = model, shape[:-1]
            fewest[key] = min(fewest.get(key, count), count)
    return fewest


def times_of_passes(kernels, dense):
    """{pass: (seconds of a step, main kernel, number of kernels)}"""
    times, mains = collections.Counter(), {}
    for (backward, kernel), (_, seconds) in kernels.items():
        if COPY.search(kernel) or HELPER.search(kernel):
            continue
        name = main_pass(kernel, backward)
        if name is None:
            return {}
        times[name] += seconds
        if name not in mains or seconds > mains[name][1]:
            mains[name] = kernel, seconds
    for (backward, kernel), (_, seconds) in kernels.items():
        is_copy = COPY.search(kernel)
        if not (is_copy or HELPER.search(kernel)) or (is_copy and dense):
            continue
        able = [p for p in mains if (p != "forward") == backward]
        if not is_copy and backward:
            named = main_pass(kernel, backward) or ("backward_data" if "Memset" in kernel else "backward_weights")
            able = [p for p in able if p == named] or able
        if is_copy:
            one_by_one = bool(ONE_BY_ONE.search(kernel))
            fit = [p for p in able if ("xmma" in mains[p][0]) != one_by_one] if backward else able
            able = fit or [p for p in able if "xmma" in mains[p][0]] or able
        for name in able:
            times[name] += seconds / len(able)
    return {p: (times[p], mains[p][0]) for p in mains}


def wanted(shape, precision, kernel, dense):
    n, c, h, w, k, r, s = shape[:7]
    if "at::native" in kernel:
        return False
    if precision == "tf32" and not re.search("tf32|nhwc|depthwise", kernel):
        return False
    aligned = c % 8 == 0 and k % 8 == 0
    return not dense or (r * s > 1 and (aligned or precision == "tf32"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps")
    parser.add_argument("header")
    parser.add_argument("-o", "--output", required=True)
    arguments = parser.parse_args()
    with open(arguments.header) as file:
        columns = file.readline().strip().split(",")
    steps = gather(arguments.steps)
    calls = calls_of_shapes(steps)
    rows = {}
    for (model, _, precision, shape), kernels in steps.items():
        n, c, h, w, k, r, s, sh, sw, ph, pw, dh, dw, groups, last = shape
        dense = groups == 1
        count = calls.get((model, shape[:-1]))
        if not count:
            continue
        for name, (seconds, kernel) in times_of_passes(kernels, dense).items():
            if not wanted(shape, precision, kernel, dense):
                continue
            layout = "NHWC" if dense or last else "NCHW"
            row = GPU | {"precision": precision, "op": "conv", "phase": name, "batch": n, "channels": c, "height": h, "width": w,
                         "filters": k, "filter_h": r, "filter_w": s, "stride_h": sh, "stride_w": sw, "pad_h": ph, "pad_w": pw,
                         "dilation_h": dh, "dilation_w": dw, "groups": groups, "layout": layout, "algorithm": "chosen",
                         "time_s": f"{seconds / count:.6g}", "kernel": kernel.replace(",", ";")[:100], "kernels": 1}
            rows.setdefault((precision, name, layout, shape[:-1]), []).append(row)
    with open(arguments.output, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        for same in rows.values():
            writer.writerow(sorted(same, key=lambda row: float(row["time_s"]))[len(same) // 2])


if __name__ == "__main__":
    main()
