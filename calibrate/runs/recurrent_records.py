#!/usr/bin/env python3
"""Turns the recurrent layers of operators.csv and kernels.csv of one GPU into records to fit a profile to.

    recurrent_records.py calibrate/records/h100_sxm -o recurrent.csv

A record's time is how long a call keeps the GPU from other work: of tbd-measure's calls the kernels and the gaps between them, of
PyTorch's the time between events. The latter's backward pass has both gradients; the product that gives the weights' is
taken off at the rate at which kernels.csv has it. Left out are

* calls of PyTorch whose kernels take less than 10 us each, or that take longer than in fp32: they wait for the host, which
  needed up to 12 us a launch (event_time_s of kernels.csv);
* calls of tbd-measure by persistent kernels (one for all steps) that PyTorch does not choose. It takes them in fp16 for
  LSTMs of one layer, up to 1,024 units and 128 sequences, both whole multiples (of 128 and 8); these are the calls of
  PyTorch in fp16 that are kept, but those whose times differ by more than a tenth: they wait for the host, too.
"""

from __future__ import annotations

import argparse
import csv
import pathlib
import statistics
import sys

GATES = {"lstm": 4, "gru": 3}
KERNELS = {"fwd": 2, "bwd": 3}  # of a step (column `kernels` of kernels.csv)
HOST_S = 10e-6  # a launch
STEADY = 0.1  # spread of calls that do not wait for the host; that of fp32 forward is 0.01
GAP_S = 1e-6  # between two kernels (`gap` of PyTorch's file)

Row = dict[str, str]


def persistent(what: str, precision: str, batch: int, hidden: int) -> bool:
    """Whether PyTorch 2 chooses cuDNN's persistent kernels (aten/src/ATen/native/cudnn/RNN.cpp, Ampere and newer)."""
    return what == "lstm" and precision == "fp16" and batch % 8 == 0 and batch <= 128 and hidden <= 1024 and hidden % 128 == 0


def measured(path: pathlib.Path) -> list[Row]:
    """Records of tbd-measure by one kernel a step, or all steps where PyTorch chooses it, with the gaps between kernels."""
    rows = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["op"] not in GATES:
                continue
            chosen = persistent(row["op"], row["precision"], int(row["batch"]), int(row["hidden"]))
            if row["algorithm"] != "STANDARD" and (not chosen or row["phase"] == "backward_weights"):
                continue
            row["time_s"] = repr(float(row["time_s"]) + GAP_S * int(row["kernels"]))
            rows.append(row)
    return rows


def weight_rates(records: list[Row]) -> dict[str, float]:
    """Operations a second of the weights' gradients by precision: the median of the calls."""
    rates: dict[str, list[float]] = {}
    for row in records:
        if row["phase"] == "backward_weights":
            work = weight_operations(row["op"], *(int(row[k]) for k in ("hidden", "input_size", "batch", "steps")))
            rates.setdefault(row["precision"], []).append(work / float(row["time_s"]))
    return {precision: statistics.median(values) for precision, values in rates.items()}


def weight_operations(what: str, hidden: int, inputs: int, batch: int, steps: int) -> float:
    """Operations of the gradients of a layer's weights."""
    return 2.0 * GATES[what] * hidden * (hidden + inputs) * batch * steps


def timed(path: pathlib.Path, rates: dict[str, float], like: Row) -> list[Row]:
    """PyTorch's calls that do not wait for the host. `like`: a record of the same GPU."""
    with path.open(newline="", encoding="utf-8") as file:
        calls = [row for row in csv.DictReader(file) if row["what"] in GATES]
    key = ("what", "phase", "batch", "dim", "length")
    fp32 = {tuple(row[k] for k in key): float(row["time_us"]) for row in calls if row["dtype"] == "fp32"}
    records = []
    for row in calls:
        batch, hidden, steps, seconds = int(row["batch"]), int(row["dim"]), int(row["length"]), 1e-6 * float(row["time_us"])
        one_kernel = persistent(row["what"], row["dtype"], batch, hidden)
        waits = seconds < HOST_S * KERNELS[row["phase"]] * steps or float(row["time_us"]) > fp32[tuple(row[k] for k in key)]
        if one_kernel:
            waits = float(row["spread"]) > STEADY
        if waits:
            continue
        if row["phase"] == "bwd":
            seconds -= weight_operations(row["what"], hidden, hidden, batch, steps) / rates[row["dtype"]]
        record = dict.fromkeys(like, "") | {k: like[k] for k in ("gpu", "generation", "layers", "directions", "cache", "driver", "cudnn")}
        record |= {"precision": row["dtype"], "op": row["what"], "phase": {"fwd": "forward", "bwd": "backward_data"}[row["phase"]]}
        record |= {"batch": str(batch), "steps": str(steps), "hidden": str(hidden), "input_size": str(hidden)}
        record |= {"algorithm": "PERSIST_STATIC" if one_kernel else "STANDARD", "time_s": repr(seconds), "spread": row["spread"], "samples": "7", "timer": "event", "source": "operators.csv"}
        records.append(record)
    return records


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="with operators.csv and kernels.csv")
    parser.add_argument("-o", "--output", required=True, help="the records to write")
    options = parser.parse_args()
    records = measured(options.folder / "kernels.csv")
    records += timed(options.folder / "operators.csv", weight_rates(records), records[0])
    with open(options.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    print(f"{len(records)} records", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
