#!/usr/bin/env python3
"""Time to accuracy against measured runs that are not part of the repository.

    tests/validation/judge_tta.py PROGRAM [FOLDER] [--only BENCHMARK]

FOLDER (default ../shared/reference/tta beside the repository) holds tta_systems.csv, tta_runs.csv and comm_share_traces.csv; without it the
script says so and ends. Submissions count if they are fair: closed division, three runs or more that reached the target, and a rate
that the logs state rather than one of the whole run. A quarter of them by the MD5 of their id is `fit`, which may be
looked at one by one; of `score` only the errors of groups are printed. --only judges the submissions of one benchmark
and nothing else.
"""
import argparse
import csv
import hashlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "../shared/reference/tta"
COLUMNS = ["id", "benchmark", "round", "target", "gpu", "gpus", "nodes", "global_batch", "grad_accum", "network", "precision",
           "samples_per_s", "tta_mean_s", "tta_cv", "runs_ok", "samples_mean", "split"]
UNFAIR = ("open_division", "rate_from_whole_run", "audit_")

# Models of the traces: network, variant, framework, precision, steps of every sequence. DeepSpeech2 hears CMU ARCTIC, 1,132
# sentences of 3 s (Kominek and Black, SSW5, 2004), in frames of 10 ms; petuum/adaptdl took the network from
# SeanNaren/deepspeech.pytorch, whose defaults were GRU layers of 800.
TRACED = {
    "imagenet": ("resnet50", "v1.5", "pytorch_1_8", "amp", ""),
    "bert": ("bert_base", "", "pytorch_1_8", "", ""),
    "deepspeech2": ("deep_speech2", "seannaren_gru", "pytorch_1_8", "", "300"),
}
# How the traces' GPUs are joined, within one machine and across several. RTX 2080 Ti reach each other over TCP even in
# one machine: AdaptDL runs each replica in a container of its own, between which NCCL has no shared memory, and the
# boards have no peer access. BERT and ResNet-50 agree: on two to eight GPUs their exchanges take 1.2 to 1.5 GB/s a GPU.
CLUSTERS = {
    "t4": ({"network": "pcie3"}, {"network": "5 Gbit/s", "exchange": "all_reduce_tcp"}),  # what AWS gives one flow
    "rtx2080ti": ({"network": "50 Gbit/s", "exchange": "all_reduce_tcp"},) * 2,
    "a100_sxm_40gb": ({"machine": "dgx_a100"}, {"machine": "dgx_a100"}),
}
LEAST_SYSTEMS = 3  # of a round, for an order
APART = {"rtx2080ti"}  # each GPU as a machine of its own

# DAWNBench's entries for ImageNet on V100 whose sizes of images are known: how tta_runs.csv calls the system, and what it
# is predicted with.
ENTRIES = {
    "8 * V100 (AWS p3.16xlarge)":
        {"target": "resnet50_fastai", "framework": "pytorch_0_4", "machine": "aws_p3_16xlarge", "gpus": "8", "batch": "128"},
    "64 * V100 (8 machines - AWS p3.16xlarge)":
        {"target": "resnet50_imagenet18", "framework": "pytorch_0_4", "machine": "aws_p3_16xlarge", "gpus": "8",
         "machines": "8", "batch": "64"},
    "16 * 8 * Tesla-V100(ModelArts Service)":
        {"target": "resnet50_imagenet18", "framework": "mxnet_1_2", "gpus": "8", "machines": "16", "batch": "64",
         "network": "infiniband_100g"},
}

def split_of(identity: str) -> str:
    return "fit" if int(hashlib.md5(identity.encode()).hexdigest(), 16) % 4 == 0 else "score"


def is_fair(row: dict) -> bool:
    return not any(flag in row["flags"] for flag in UNFAIR) and int(row["runs_ok"] or 0) >= 3


def network_of(row: dict) -> str:
    """All adapters of a machine between machines, as '200 Gbit/s', where the system's description counts fewer than GPUs;
    '' for one machine, where it counts none, and where each GPU has its own, as the rules' machines have."""
    gpus, nodes = int(row["gpus"]), int(row["nodes"])
    if nodes == 1:
        return ""
    parts = re.split("[;,+]", row["interconnect"])
    parts = [part for part in parts if "Compute" in part] or [part for part in parts if not re.search("Manage|Storage", part)]
    counted = [re.search(r"\b(\d+) ?x .*?(\d+) ?Gb", part) for part in parts]
    adapters = [(int(found[1]), int(found[2])) for found in counted if found]
    number, rate = max(adapters, key=lambda each: each[0] * each[1], default=(gpus, 0))
    return "" if number >= gpus // nodes else f"{number * rate} Gbit/s"


def submissions(folder: Path) -> list[dict]:
    with open(folder / "tta_systems.csv", newline="") as table:
        rows = [row for row in csv.DictReader(table) if is_fair(row)]
    return [{**row, "split": split_of(row["id"]), "network": network_of(row)} for row in rows]


def run(program: str, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout


def validated(program: str, rows: list[dict], form: str) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
        file.flush()
        return run(program, "validate", "--tta", file.name, "--format", form)


def rates_alone(program: str, row: dict) -> float | None:
    """Predicted over measured throughput of one submission of split fit; None where it has no prediction."""
    assert row["split"] == "fit"
    bias = json.loads(validated(program, [row], "json"))["groups"][0].get("rate_bias")
    return None if bias is None else 1 + bias


def judge_submissions(program: str, folder: Path, only: str = "") -> None:
    rows = submissions(folder)
    if only:
        named = sorted({row["benchmark"] for row in rows})
        rows = [row for row in rows if row["benchmark"] == only]
        if not rows:
            raise SystemExit(f"--only: no benchmark '{only}'; expected one of {', '.join(named)}")
    print(validated(program, rows, "table"))


def judge_order(program: str, folder: Path) -> None:
    """Kendall's tau-b of the score rows of each round of which there are three systems or more."""
    rounds = defaultdict(list)
    for row in submissions(folder):
        if row["split"] == "score":
            rounds[row["benchmark"], row["round"]].append(row)
    print("order of systems by time after the measured samples, benchmark and round: Kendall's tau-b")
    taus = []
    for (benchmark, name), rows in sorted(rounds.items()):
        group = json.loads(validated(program, rows, "json"))["groups"][0]
        tau = group.get("tau")
        if tau is None or group["covered"] < LEAST_SYSTEMS:
            continue
        taus.append(tau)
        print(f"{benchmark:20} {name:5} {int(group['covered']):3} systems {tau:6.2f}")
    print(f"{'mean, and median':20} {len(taus):5} rounds {statistics.mean(taus):6.2f} {statistics.median(taus):6.2f}\n")


def judge_entries(program: str, folder: Path) -> None:
    with open(folder / "tta_runs.csv", newline="") as table:
        measured = {row["system"]: float(row["time_to_target_s"]) for row in csv.DictReader(table)
                    if row["set"] == "dawnbench" and row["benchmark"].startswith("imagenet")}
    print("DAWNBench, ImageNet on V100: training time to the target, predicted and measured, in s")
    for system, options in ENTRIES.items():
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        printed = run(program, "tta", "resnet50", "--variant", "v1.5", "--gpu", "v100_sxm2_16gb", "--precision", "amp", *words,
                      "--format", "json")
        predicted = json.loads(printed)["runs"][0]["training"]
        print(f"{system:45} {predicted:8.0f} {measured[system]:8.0f} {100 * (predicted / measured[system] - 1):+6.1f} %")
    print()


def equal_placements(folder: Path) -> tuple[dict, dict]:
    """(model, gpu, GPUs of a machine, machines) -> batch -> measured shares, as many GPUs on each machine; (model, gpu) ->
    mean time in s that one GPU alone spends there: AdaptDL's statistics of the gradients."""
    shares: dict = defaultdict(lambda: defaultdict(list))
    alone: dict = defaultdict(list)
    with open(folder / "comm_share_traces.csv", newline="") as table:
        for row in csv.DictReader(table):
            gpus, nodes = int(row["gpus"]), int(row["nodes"])
            if len(set(row["placement"])) > 1 or row["model"] not in TRACED:
                continue
            exposed, step = float(row["exposed_sync_s"]), float(row["step_s"])
            if gpus == 1:
                alone[row["model"], row["gpu"]].append(exposed)
                continue
            key = (row["model"], row["gpu"], gpus // nodes, nodes)
            shares[key][int(float(row["batch_per_gpu"]))].append((exposed, step))
    return shares, {key: statistics.mean(times) for key, times in alone.items()}


def predicted_shares(program: str, key: tuple, batches: list[int]) -> dict[int, float]:
    model, gpu, gpus, nodes = key
    network, variant, framework, precision, steps = TRACED[model]
    if not precision:
        precision = "tf32" if gpu.startswith("a100") else "fp32"
    options = {"model": network, "variant": variant, "framework": framework, "precision": precision, "gpu": gpu,
               "gpus": "1" if gpu in APART else str(gpus),
               "machines": str(gpus * nodes if gpu in APART else nodes), "batch": ",".join(map(str, batches)),
               "seq-len": steps, "metrics": "exchange_bound_share", **CLUSTERS[gpu][nodes > 1]}
    arguments = [word for name, value in options.items() if value for word in (f"--{name}", value)]
    lines = run(program, "--quiet", "sweep", *arguments, "--format", "jsonl").splitlines()
    rows = [json.loads(line) for line in lines]
    return {int(row["batch"]): row["exchange_bound_share"] for row in rows if row["exchange_bound_share"] is not None}


def judge_communication(program: str, folder: Path) -> None:
    """The share of an iteration that is exposed, beside the measured one less what one GPU alone spends there."""
    errors = defaultdict(list)
    with_statistics = []
    measured, alone = equal_placements(folder)
    for key, batches in sorted(measured.items()):
        predicted = predicted_shares(program, key, sorted(batches))
        for batch, rows in batches.items():
            if batch not in predicted:
                continue
            where = "several machines" if key[3] > 1 else "one machine"
            own = alone[key[0], key[1]]
            net = statistics.mean(max(0.0, exposed - own) / step for exposed, step in rows)
            errors[(key[0], key[1], where)].append(predicted[batch] - net)
            with_statistics.append(predicted[batch] - statistics.mean(exposed / step for exposed, step in rows))
    print("communication share: mean absolute error in points, mean of predicted - measured")
    everything = []
    for group, off in sorted(errors.items()):
        everything += off
        print(f"{' '.join(group):45} {len(off):4} {100 * statistics.mean(map(abs, off)):6.1f} {100 * statistics.mean(off):+6.1f}")
    print(f"{'all':45} {len(everything):4} {100 * statistics.mean(map(abs, everything)):6.1f}")
    print(f"{'all, with what one GPU spends there':45} {len(everything):4} {100 * statistics.mean(map(abs, with_statistics)):6.1f}")


def main() -> None:
    summary, _, details = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PROGRAM", help="tbd-sim")
    parser.add_argument("folder", metavar="FOLDER", nargs="?", type=Path, default=FOLDER, help="of the measured runs")
    parser.add_argument("--only", metavar="BENCHMARK", default="", help="as retinanet")
    options = parser.parse_args()
    if not (options.folder / "tta_systems.csv").exists():
        print(f"{options.folder}: no measured runs here; nothing is judged")
        return
    judge_submissions(options.program, options.folder, options.only)
    if options.only:
        return
    judge_order(options.program, options.folder)
    judge_entries(options.program, options.folder)
    judge_communication(options.program, options.folder)


if __name__ == "__main__":
    main()
