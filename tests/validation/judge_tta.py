#!/usr/bin/env python3
"""Time to accuracy against measured runs that are not part of the repository.

    tests/validation/judge_tta.py PROGRAM [FOLDER]

FOLDER (default ../shared/reference/tta) holds tta_systems.csv and comm_share_traces.csv; without it the script says so
and ends. Submissions count if they are fair: closed division, three runs or more that reached the target, and a rate
that the logs state rather than one of the whole run. A quarter of them by the MD5 of their id is `fit`, which may be
looked at one by one; of `score` only the errors of groups are printed.
"""
import csv
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

COLUMNS = ["id", "benchmark", "round", "gpu", "gpus", "nodes", "global_batch", "precision", "samples_per_s",
           "tta_mean_s", "samples_mean", "split"]
UNFAIR = ("open_division", "rate_from_whole_run", "audit_")

# Models of the traces: network, variant, framework, precision, steps of every sequence. DeepSpeech2 hears CMU ARCTIC, 1,132
# sentences of 3 s (Kominek and Black, SSW5, 2004), in frames of 10 ms.
TRACED = {
    "imagenet": ("resnet50", "v1.5", "pytorch_1_8", "amp", ""),
    "bert": ("bert_base", "", "pytorch_1_8", "", ""),
    "deepspeech2": ("deep_speech2", "", "pytorch_1_8", "", "300"),
}
# How the traces' GPUs are joined, within one machine and across several.
CLUSTERS = {
    "t4": ({"network": "pcie3"}, {"network": "5 Gbit/s", "exchange": "all_reduce_tcp"}),  # what AWS gives one flow
    "rtx2080ti": ({"machine": "rtx2080ti_8x"},
                  {"machine": "rtx2080ti_8x", "network": "50 Gbit/s", "exchange": "all_reduce_tcp"}),
    "a100_sxm_40gb": ({"machine": "dgx_a100"}, {"machine": "dgx_a100"}),
}


def split_of(identity: str) -> str:
    return "fit" if int(hashlib.md5(identity.encode()).hexdigest(), 16) % 4 == 0 else "score"


def is_fair(row: dict) -> bool:
    return not any(flag in row["flags"] for flag in UNFAIR) and int(row["runs_ok"] or 0) >= 3


def submissions(folder: Path) -> list[dict]:
    with open(folder / "tta_systems.csv", newline="") as table:
        rows = [row for row in csv.DictReader(table) if is_fair(row)]
    return [{**row, "split": split_of(row["id"])} for row in rows if row["batch_unit"] == "samples"]


def run(program: str, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout


def judge_submissions(program: str, folder: Path) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(submissions(folder))
        file.flush()
        print(run(program, "validate", "--tta", file.name))


def equal_placements(folder: Path) -> dict:
    """(model, gpu, GPUs of a machine, machines) -> batch -> measured shares; as many GPUs on each machine."""
    shares: dict = defaultdict(lambda: defaultdict(list))
    with open(folder / "comm_share_traces.csv", newline="") as table:
        for row in csv.DictReader(table):
            gpus, nodes = int(row["gpus"]), int(row["nodes"])
            if gpus == 1 or len(set(row["placement"])) > 1 or row["model"] not in TRACED:
                continue
            key = (row["model"], row["gpu"], gpus // nodes, nodes)
            shares[key][int(float(row["batch_per_gpu"]))].append(float(row["sync_share"]))
    return shares


def predicted_shares(program: str, key: tuple, batches: list[int]) -> dict[int, float]:
    model, gpu, gpus, nodes = key
    network, variant, framework, precision, steps = TRACED[model]
    if not precision:
        precision = "tf32" if gpu.startswith("a100") else "fp32"
    options = {"model": network, "variant": variant, "framework": framework, "precision": precision, "gpu": gpu,
               "gpus": str(gpus), "machines": str(nodes), "batch": ",".join(map(str, batches)),
               "seq-len": steps, "metrics": "exchange_bound_share", **CLUSTERS[gpu][nodes > 1]}
    arguments = [word for name, value in options.items() if value for word in (f"--{name}", value)]
    lines = run(program, "--quiet", "sweep", *arguments, "--format", "jsonl").splitlines()
    rows = [json.loads(line) for line in lines]
    return {int(row["batch"]): row["exchange_bound_share"] for row in rows if row["exchange_bound_share"] is not None}


def judge_communication(program: str, folder: Path) -> None:
    errors = defaultdict(list)
    for key, measured in sorted(equal_placements(folder).items()):
        predicted = predicted_shares(program, key, sorted(measured))
        for batch, shares in measured.items():
            if batch in predicted:
                where = "several machines" if key[3] > 1 else "one machine"
                errors[(key[0], key[1], where)].append(predicted[batch] - statistics.mean(shares))
    print("communication share: mean absolute error in points, mean of predicted - measured")
    everything = []
    for group, off in sorted(errors.items()):
        everything += off
        print(f"{' '.join(group):45} {len(off):4} {100 * statistics.mean(map(abs, off)):6.1f} {100 * statistics.mean(off):+6.1f}")
    print(f"{'all':45} {len(everything):4} {100 * statistics.mean(map(abs, everything)):6.1f}")


def main() -> None:
    program = sys.argv[1]
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).resolve().parents[2] / "../shared/reference/tta"
    if not (folder / "tta_systems.csv").exists():
        print(f"{folder}: no measured runs here; nothing is judged")
        return
    judge_submissions(program, folder)
    judge_communication(program, folder)


if __name__ == "__main__":
    main()
