#!/usr/bin/env python3
"""Predicts measured training of transformers on one GPU with tbd-sim and prints errors by set.

    llm.py runs --table ../shared/reference/llm/runs.csv --program build/release/simulate/tbd-sim [--rows]
    llm.py operators --table ../shared/reference/kernels/neusight_transformer_operators.csv --program ...
    llm.py norms --table ../shared/reference/llm/training_kernels.csv --program ...

`runs` judges rows on one GPU whose set the table RECIPES has; `--rows` prints those of the fit quarter one by one.
`operators` judges the forward and the backward pass of fp32 eager transformers, of which the table has every operator of
the first layer and of what is around the layers: the sum with that layer as often as the network has it.
`norms` judges PyTorch's RMS norms in bf16, forward and both gradients; the limits of stream.h were read off their fastest rows.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import math
import re
import statistics
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

#: tbd-sim's GPU, by the table's.
GPUS = {
    "A100-80GB (form factor not stated)": "a100_sxm_80gb",
    "B200": "b200",
    "GB200": "gb200",
    "GB300": "gb300",
    "H200": "h200",
    "NVIDIA_A100_80GB_PCIe": "a100_pcie_80gb",
    "Tesla_V100-PCIE-32GB": "v100_pcie_32gb",
}

#: tbd-sim's model, by the table's.
MODELS = {"llama3.2-1b": "llama3.2_1b", "llama3.2-3b": "llama3.2_3b"}

#: What a set runs: framework by attention, keys of the framework's file, optimizer by what the table says of it.
ATTENTION = {
    "sdpa cudnn": "cudnn",
    "sdpa mem-efficient": "memory_efficient",
    "sdpa flash 2": "flash",
    "sdpa (flash / flex for packed)": "flash",
}
BASES = {"cudnn_llama1b": "pytorch_hf", "torchtune": "pytorch_compiled"}
OPTIMIZERS = (("SGD", "sgd"), ("AdamW 8-bit", "adam_8bit"), ("AdamW bf16", "adamw"))

#: Networks of the operators' table: model of tbd-sim, parameters in place of its own, layers of the whole network, the
#: beginning of the names of the rows with which its first layer begins and ends.
OPERATORS = {
    "bert_large": ("bert_large", "bert_large_lm", {}, 24, "bert.encoder", "bert.pooler"),
    "gpt2_large": ("gpt2", "gpt2_large", {}, 36, "transformer.h.0.ln_1", "transformer.ln_f"),
    "gpt3_27": ("gpt3", "gpt3_2.7b", {}, 32, "transformer.h.0.ln_1", "transformer.ln_f"),
    "gpt3_xl": (
        "gpt3",
        "gpt3_2.7b",
        {"width": 3072, "heads": 24, "kv_heads": 24, "query_width": 3072, "key_width": 3072, "joined_width": 9216, "filters": 12288},
        24,
        "transformer.h.0.ln_1",
        "transformer.ln_f",
    ),
    "opt_13": ("opt", "opt_1.3b", {}, 24, "model.decoder.layers.0.self_attn_layer_norm", "model.decoder.final_layer_norm"),
}

#: Operators that launch no kernel.
VIEWS = ("size", "getitem", "getattr", "view", "permute", "transpose", "unsqueeze", "split", "finfo", "to", "type", "expand", "dim")
PASSES = ("fwd_ms", "bwd_ms")
#: Elements of an output that takes no time beside the timer's own, and how long its kernel takes, in predictions, too.
TINY = 40_000
KERNEL_MS = 0.003


@dataclass(frozen=True)
class Judged:
    group: str
    name: str
    fit: bool
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


def is_fit(name: str) -> bool:
    """Returns whether the row is of the quarter that may be looked at one by one."""
    return int(hashlib.md5(name.encode()).hexdigest(), 16) % 4 == 0


def predict(program: Path, arguments: list[str]) -> list[dict[str, str]]:
    run = subprocess.run([program, *arguments, "--format", "csv"], capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(run.stderr.strip())
    return list(csv.DictReader(run.stdout.splitlines()))


def file_of(folder: Path, model: str) -> str:
    """Returns the name of the file that the catalogue has the model in."""
    for file in sorted((folder / "graphs/models").glob("*.yaml")):
        if f"\n  {model}:\n" in file.read_text() or model in file.read_text().split("variants:")[0]:
            return file.stem
    raise SystemExit(f"no model of the catalogue is called {model}")


def parameters_of(folder: Path, file: str, member: str) -> dict[str, str]:
    """Returns the parameters that the member of the family has in place of its model's."""
    text = (folder / f"graphs/models/{file}.yaml").read_text()
    if f"\n  {member}:\n" not in text:
        return {}
    body = text.split(f"\n  {member}:\n")[1].split("parameters: {")[1].split("}")[0]
    return {key.strip(): value.strip() for key, value in (entry.split(":") for entry in body.replace("\n", " ").split(","))}


def write_model(path: Path, base: str, parameters: dict[str, object], optimizer: str) -> Path:
    values = ", ".join(f"{key}: {value}" for key, value in parameters.items())
    path.write_text(
        f"title: judged\nbased_on: {base}\nvariants:\n  judged:\n    description: judged\n    source: the table\n"
        f"    optimizer: {optimizer}\n    parameters: {{{values}}}\n"
    )
    return path


def write_framework(path: Path, base: str, row: dict[str, str]) -> Path:
    keys = [f"attention: {ATTENTION[row['attention']]}"]
    if row["set"] == "torchtune":  # a step fused in the backward pass frees each gradient at once
        keys += [f"weight_gradients: {'at_once' if 'fused in backward' in row['optimizer'] else 'until_update'}"]
    rewrites = "rewrites: {feature_maps: recomputed_blocks}\n" if row["recompute"] == "full" else ""
    sources = "lowering: the table" + (", rewrites: the table" if rewrites else "")
    path.write_text(f"title: judged\nbased_on: {base}\nlowering: {{{', '.join(keys)}}}\n{rewrites}sources: {{{sources}}}\n")
    return path


def judge_run(row: dict[str, str], folder: Path, program: Path, scratch: Path) -> Judged | None:
    if row["set"] not in BASES or row["gpus"] != "1" or row["use"] not in ("time", "memory") or row["model"] not in MODELS:
        return None
    if row["offload"] not in ("", "none"):
        return None
    member = MODELS[row["model"]]
    base = file_of(folder, member)
    optimizer = next(name for text, name in OPTIMIZERS if row["optimizer"].startswith(text))
    model = write_model(scratch / "judged_model.yaml", base, parameters_of(folder, base, member), optimizer)
    framework = write_framework(scratch / "judged_framework.yaml", BASES[row["set"]], row)
    where = ["--gpu", GPUS[row["gpu"]], "--model", str(model), "--framework", str(framework), "--precision", "bf16_pure"]
    got = predict(program, [*where, "--batch", row["micro_batch"], "--seq-len", row["seq_len"]])[0]
    value = float(row["value"])
    if row["metric"] == "step_time":
        pair = (value, float(got["iteration_time"]))
    elif row["metric"] == "tokens_per_s_per_gpu":  # as times, so that errors of all rows have one sign
        pair = (1 / value, 1 / float(got["tokens_per_second"]))
    else:
        pair = (value * 2**30, float(got["memory_model"]))
    group = f"{row['set']} {'memory' if row['use'] == 'memory' else 'time, ' + row['attention']}"
    return Judged(group, f"{row['id']} {row['seq_len']} x {row['micro_batch']}", is_fit(row["id"]), *pair)


def operator_of(row: dict[str, str]) -> str:
    """Returns the operator's name, or its module's."""
    return row["target"].split("<built-in function ")[-1].split("<built-in method ")[-1].split(" ")[0].strip(">")


def runs_kernel(row: dict[str, str]) -> bool:
    return operator_of(row) not in VIEWS and row["output_shape"] != "(1,)"


def elements_of(shape: str) -> int:
    return math.prod(int(size) for size in re.findall(r"\d+", shape))


def timer_floors(rows: list[dict[str, str]]) -> dict[str, float]:
    """Returns milliseconds by column that the table's timer shows beside a kernel's own.

    Each operator was timed alone, between two events, so that the host's way to its launch counts, which a network's kernels hide.
    What operators on a few numbers take is that way and the least time of a kernel.
    """
    tiny = [row for row in rows if runs_kernel(row) and 1 < elements_of(row["output_shape"]) < TINY]
    times = {column: [float(row[column]) for row in tiny if float(row[column] or 0) > 0] for column in PASSES}
    return {column: max(0.0, min(values) - KERNEL_MS) for column, values in times.items()}


def operator_sums(rows: list[dict[str, str]], floors: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Returns milliseconds forward and backward of the rows of the first layer and of those around it."""
    sums = {"layer": [0.0, 0.0], "around": [0.0, 0.0]}
    _, _, _, _, begin, end = OPERATORS[rows[0]["model"]]
    place = "around"
    for row in rows:
        target = row["target"]
        if target.startswith(begin) or (begin == "bert.encoder" and "encoder.layer.0" in target):
            place = "layer"
        elif target.startswith(end):
            place = "around"
        if not runs_kernel(row):
            continue
        for i, column in enumerate(PASSES):
            sums[place][i] += max(0.0, float(row[column] or 0) - floors[column])
    return {key: (value[0], value[1]) for key, value in sums.items()}


def judge_operators(table: Path, folder: Path, program: Path, scratch: Path) -> list[Judged]:
    by_run = defaultdict(list)
    with table.open() as file:
        for row in csv.DictReader(file):
            if row["mode"] == "train" and row["model"] in OPERATORS and row["gpu"] in GPUS:
                by_run[(row["gpu"], row["model"], row["seqlen"], row["batch"])].append(row)
    judged = []
    by_gpu = defaultdict(list)
    for (gpu, *_), rows in by_run.items():
        by_gpu[gpu] += rows
    floors = {gpu: timer_floors(rows) for gpu, rows in by_gpu.items()}
    for (gpu, name, length, batch), rows in by_run.items():
        base, member, own, layers, _, _ = OPERATORS[name]
        parameters = {**parameters_of(folder, base, member), **own, "last_layer": 0}
        model = write_model(scratch / "judged_model.yaml", base, parameters, "none")
        where = ["--gpu", GPUS[gpu], "--framework", "pytorch_hf_eager", "--batch", batch, "--seq-len", length]
        kernels = predict(program, ["kernels", str(model), *where])
        sums = {"layer": [0.0, 0.0], "around": [0.0, 0.0]}
        for kernel in kernels:
            if kernel["layer"] in ("loss", "predictions/loss"):
                continue
            place = "layer" if kernel["layer"].startswith("layer0/") else "around"
            sums[place][kernel["phase"] != "forward"] += 1e3 * float(kernel["time"]) * float(kernel.get("launches", 1) or 1)
        measured = operator_sums(rows, floors[gpu])
        what = f"{gpu} {name} {length} x {batch}"
        for i, phase in enumerate(("forward", "backward")):
            pair = [part["layer"][i] * layers + part["around"][i] for part in (measured, sums)]
            judged.append(Judged(f"{phase} {gpu}", what, is_fit(what), *pair))
        pair = [sum(part["layer"]) * layers + sum(part["around"]) for part in (measured, sums)]
        judged.append(Judged(f"total {gpu}", what, is_fit(what), *pair))
    return judged


NORM = """title: A norm
sample: sequence
variants:
  v: {{description: judged, source: the table, optimizer: none, frameworks: [pytorch]}}
graphs:
  main:
    inputs: {{x: [{rows}, {columns}]}}
    outputs: [norm]
    layers:
      - {{name: scaled, type: layer_scale}}
      - {{name: norm, type: rms_norm}}
training: [{{graph: main}}]
"""


def judge_norms(table: Path, program: Path, scratch: Path) -> list[Judged]:
    judged = []
    framework = scratch / "judged_framework.yaml"
    framework.write_text("title: judged\nbased_on: pytorch_hf\nlowering: {rms_norm: fused}\nsources: {lowering: the table}\n")
    with table.open() as file:
        rows = [row for row in csv.DictReader(file) if row["op"] == "rms_norm" and row["backend"] == "pytorch"]
    for row in rows:
        sizes = dict(entry.split("=") for entry in row["shape"].split(", "))
        model = scratch / "judged_model.yaml"
        model.write_text(NORM.format(rows=sizes["N"], columns=sizes["C"]))
        where = ["--gpu", GPUS[row["gpu"]], "--framework", str(framework), "--precision", "bf16_pure", "--batch", "1"]
        forward = row["pass"] == "fwd"
        times = [
            float(kernel["time"])
            for kernel in predict(program, ["kernels", str(model), *where])
            if kernel["layer"] == "norm" and (kernel["phase"] == "forward") == forward
        ]
        name = f"{row['gpu']} {row['pass']} {row['shape']}"
        judged.append(Judged(f"rms_norm {row['pass']} {row['gpu']}", name, is_fit(name), float(row["time_us"]) * 1e-6, sum(times)))
    return judged


def report(judged: list[Judged], rows: bool) -> None:
    groups = defaultdict(list)
    for one in judged:
        groups[one.group].append(one)
        if rows and one.fit:
            print(f"{one.group:45} {one.name:40} {one.measured:12.5g} {one.predicted:12.5g} {100 * one.error:7.1f} %")
    for group, members in sorted(groups.items()):
        for part in (True, False):
            errors = [100 * one.error for one in members if one.fit == part]
            # a judged group of one or two would show single rows
            if len(errors) > 2 or (part and errors):
                mean = statistics.mean(abs(error) for error in errors)
                print(f"{group:45} {'fit' if part else 'judged':7} {len(errors):3} rows, mean |error| {mean:5.1f} %, mean {statistics.mean(errors):+6.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("runs", "operators", "norms"))
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--program", type=Path, required=True, help="tbd-sim")
    parser.add_argument("--rows", action="store_true", help="print the rows of the fit quarter one by one")
    options = parser.parse_args()
    folder = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        if options.command == "operators":
            judged = judge_operators(options.table, folder, options.program, scratch)
        elif options.command == "norms":
            judged = judge_norms(options.table, options.program, scratch)
        else:
            with options.table.open() as file:
                results = [judge_run(row, folder, options.program, scratch) for row in csv.DictReader(file)]
            judged = [one for one in results if one is not None]
    report(judged, options.rows)


if __name__ == "__main__":
    main()
