"""Journal entries as rows of the validation table, and as rows of the kernel summary."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from catalogue import BY_NAME

COLUMNS = (
    "id set group use split gpu framework version precision model variant batch_per_gpu gpus machines network method "
    "metric value unit note why source"
).split()
KERNEL_COLUMNS = "gpu version model batch precision mode phase kind kernel calls_per_iteration mean_us share".split()
SHARE_WHY = "share: compare in words, not by percent error"
COUNTER_WHY = "hardware counters: work, not time"
DEVICE_MEMORY_WHY = "includes the CUDA context and what earlier runs of the same process loaded"
MODE_NAMES = {"eager": "", "cuda_graph": ", CUDA graph", "compile": ", torch.compile", "counters": ""}
SOURCE = "calibrate/runs/train.py of this project"

Entry = Mapping[str, Any]
Row = dict[str, Any]


def validation_rows(entry: Entry) -> list[Row]:
    """The rows of one measured configuration, in the columns of COLUMNS."""
    return [_complete(entry, row) for row in _metrics(entry)]


def _metrics(entry: Entry) -> Iterator[Row]:
    if "counters" in entry:
        yield from _counter_metrics(entry["counters"])
        return
    model = BY_NAME[entry["model"]]
    middle = entry["iteration"]["median"]
    samples = entry["batch"] * model.samples
    speed = {"group": _speed_group(entry), "note": _speed_note(entry)}
    yield speed | {"metric": "throughput", "value": samples / middle, "unit": model.unit}
    yield speed | {"metric": "iteration_time", "value": middle, "unit": "s"}
    yield from _phase_metrics(entry)
    yield from _share_metrics(entry)
    yield from _memory_metrics(entry)


def _phase_metrics(entry: Entry) -> Iterator[Row]:
    group = f"{BY_NAME[entry['model']].family}_phase_gpu_time"
    summary = entry.get("kernels") or {"phase_seconds": {}}
    for phase, seconds in summary["phase_seconds"].items():
        note = "time with one of the phase's kernels running"
        yield {"group": group, "metric": f"gpu_time:{phase}", "value": seconds, "unit": "s", "note": note}
    for phase, spread in entry.get("phases", {}).items():
        note = f"between CUDA events, idle gaps included; MAD {percent(spread['mad'], spread['median'])}"
        yield {
            "group": group,
            "metric": f"phase_time:{phase}",
            "value": spread["median"],
            "unit": "s",
            "note": note,
        }


def _share_metrics(entry: Entry) -> Iterator[Row]:
    share = {"group": "utilization", "use": "context", "unit": "%", "why": SHARE_WHY}
    if entry.get("kernels"):
        busy = 100 * entry["kernels"]["busy_seconds"] / entry["iteration"]["median"]
        note = "time with a kernel running (profiled) over the unprofiled iteration time"
        yield share | {"metric": "gpu_compute_utilization", "value": busy, "note": note}
    cpus = entry["environment"]["cpus"]
    note = f"processor time over wall time and {cpus} CPUs; {cpus * entry['cpu_utilization']:.2f} CPUs busy"
    yield share | {"metric": "cpu_utilization", "value": 100 * entry["cpu_utilization"], "note": note}


def _memory_metrics(entry: Entry) -> Iterator[Row]:
    used = entry["memory"]
    allocator = {"group": "memory_allocator", "metric": "memory_used", "use": "memory"}
    if used["allocated_peak"] is not None:
        yield allocator | {"value": used["allocated_peak"], "unit": "bytes (allocator high water)"}
    if used["reserved_peak"] is not None:
        yield allocator | {"value": used["reserved_peak"], "unit": "bytes (allocator reserve, high water)"}
    if entry["device_memory_used"] is not None:
        yield {
            "group": "memory_device",
            "metric": "memory_used",
            "use": "context",
            "value": entry["device_memory_used"],
            "unit": "bytes (device memory in use)",
            "why": DEVICE_MEMORY_WHY,
        }
    for category in ("weights", "gradients", "optimizer_state", "aux_state", "input_io", "feature_maps"):
        if used[category] is not None:
            note = "left allocated by the forward phase for backward" if category == "feature_maps" else ""
            yield {
                "group": "memory_category",
                "metric": f"memory:{category}",
                "use": "memory",
                "value": used[category],
                "unit": "bytes",
                "note": note,
            }


def _counter_metrics(counters: Mapping[str, float]) -> Iterator[Row]:
    common = {"group": "counters", "use": "context", "why": COUNTER_WHY}
    note = f"Nsight Compute, {counters['kernels']} kernels"
    yield common | {
        "metric": "fp32_flops",
        "value": counters["fp32_flops"],
        "unit": "flop/iteration",
        "note": note,
    }
    yield common | {
        "metric": "dram_bytes",
        "value": counters["dram_bytes"],
        "unit": "bytes/iteration",
        "note": note,
    }


def _speed_group(entry: Entry) -> str:
    family = BY_NAME[entry["model"]].family
    if family == "detection":
        return "detection"
    if family == "cnn":
        return f"cnn_{'mixed' if entry['precision'] == 'bf16' else entry['precision']}_single"
    return f"{family}_single"


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2g} %" if whole > 0 else "unknown"


def _speed_note(entry: Entry) -> str:
    spread, telemetry = entry["iteration"], entry["telemetry"]
    iterations = len(entry["iteration_seconds"])
    parts = [f"median of {iterations} iterations, MAD {percent(spread['mad'], spread['median'])}"]
    parts.append("synthetic data on the device, cuDNN autotuned")
    readings = {"SM {:.0f} MHz": "sm_mhz", "memory {:.0f} MHz": "memory_mhz", "{:.0f} W": "watts"}
    parts += [text.format(telemetry[key]) for text, key in readings.items() if telemetry[key] is not None]
    if entry.get("kernels"):
        parts.append(f"GPU busy {percent(entry['kernels']['busy_seconds'], spread['median'])}")
    if entry["precision"] == "bf16" and any("float16" in types for types in entry["types"].values()):
        layers = [layer for layer, types in entry["types"].items() if "float16" in types]
        parts.append(f"autocast runs {', '.join(layers)} in float16")
    if not entry["loss_finite"]:
        parts.append("loss not finite")
    return "; ".join(parts)


def _complete(entry: Entry, row: Row) -> Row:
    environment, model = entry["environment"], BY_NAME[entry["model"]]
    use = row.get("use", "time")
    fixed = {
        "set": f"{entry['gpu']}_pytorch",
        "use": use,
        "split": "" if use == "context" else "score",
        "gpu": entry["gpu"],
        "framework": "pytorch",
        "version": environment["version"],
        "precision": entry["precision"],
        "model": entry["model"],
        "variant": model.variant + MODE_NAMES[entry["mode"]],
        "batch_per_gpu": entry["batch"],
        "gpus": 1,
        "machines": 1,
        "source": f"{SOURCE}, {entry['time'][:10]}",
    }
    whole = dict.fromkeys(COLUMNS, "") | fixed | row
    identity = (whole["set"], entry["key"], whole["metric"], whole["unit"])
    whole["id"] = hashlib.sha1("|".join(identity).encode()).hexdigest()[:10]
    whole["value"] = f"{whole['value']:.6g}" if isinstance(whole["value"], float) else str(whole["value"])
    return whole


def kernel_rows(entry: Entry) -> list[Row]:
    summary = entry.get("kernels")
    if not summary:
        return []
    common = {"gpu": entry["gpu"], "version": entry["environment"]["version"]}
    common |= {name: entry[name] for name in ("model", "batch", "precision", "mode")}
    return [
        common
        | {
            "phase": row["phase"],
            "kind": row["kind"],
            "kernel": row["name"],
            "calls_per_iteration": f"{row['calls']:.6g}",
            "mean_us": f"{row['mean_us']:.5g}",
            "share": f"{row['share']:.4g}",
        }
        for row in summary["rows"]
    ]


def table(out: Path, gpu: str) -> Path:
    return out / f"{gpu}_pytorch.csv"


def write_tables(out: Path, gpu: str, entries: Iterable[Entry]) -> None:
    """Both tables of one GPU, each replaced as a whole."""
    measured = [entry for entry in entries if entry["status"] == "ok"]
    validation = [row for entry in measured for row in validation_rows(entry)]
    kernels = [row for entry in measured for row in kernel_rows(entry)]
    _replace(table(out, gpu), COLUMNS, validation)
    _replace(out / f"{gpu}_pytorch_kernels.csv", KERNEL_COLUMNS, kernels)


def _replace(path: Path, columns: list[str], rows: Iterable[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(text.getvalue())
    os.replace(unfinished, path)
