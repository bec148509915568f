"""Flops and DRAM traffic of one iteration by hardware counters, read by NVIDIA's Nsight Compute (ncu)."""

from __future__ import annotations

import csv
import glob
import io
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from errors import CannotRun
from plan import Configuration

FLOPS = {
    "sm__sass_thread_inst_executed_op_fadd_pred_on.sum": 1,
    "sm__sass_thread_inst_executed_op_fmul_pred_on.sum": 1,
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum": 2,
}
"""Flops of the fp32 units per count; the tensor units do not count here, so this is read with TF32 off."""
DRAM = ("dram__bytes_read.sum", "dram__bytes_write.sum")
DURATION = "gpu__time_duration.sum"
LONGEST_SECONDS = 150.0


@dataclass(frozen=True)
class Counters:
    """Sums over one iteration."""

    kernels: int
    fp32_flops: float
    dram_bytes: float
    kernel_seconds: float
    """At the counter tool's own clocks and cold caches: not for timing."""


def find_ncu() -> str:
    installed = [*sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu")), "/usr/local/cuda/bin/ncu"]
    found = shutil.which("ncu") or next((path for path in reversed(installed) if Path(path).exists()), None)
    if found is None:
        raise CannotRun("no hardware counters: Nsight Compute (ncu) is not installed")
    return found


def command(ncu: str, log: Path, configuration: Configuration) -> list[str]:
    options = "--csv --page raw --print-units base --clock-control none --profile-from-start off".split()
    metrics = ["--metrics", ",".join((*FLOPS, *DRAM, DURATION))]
    script = Path(__file__).with_name("one_iteration.py")
    program = [sys.executable, str(script), configuration.key]
    return [ncu, *options, *metrics, "--log-file", str(log), *program]


def count(configuration: Configuration, deadline: float) -> Counters:
    seconds = min(LONGEST_SECONDS, deadline - time.time())
    ncu = find_ncu()
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "ncu.csv"
        try:
            done = subprocess.run(command(ncu, log, configuration), capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise CannotRun(f"no hardware counters: ncu took more than {seconds:.0f} s") from error
        text = log.read_text(errors="replace") if log.exists() else ""
    if done.returncode != 0 or '"ID"' not in text:
        lines = (text + done.stdout + done.stderr).strip().splitlines() or ["no output"]
        why = next((line for line in lines if "ERR" in line or "rror" in line), lines[-1])
        raise CannotRun(f"no hardware counters: ncu says: {why.strip()}")
    return parse(text)


def parse(text: str) -> Counters:
    """Sums the table that ncu writes: names, then units, then one row a kernel."""
    table = text[text.index('"ID"') :]
    rows = list(csv.DictReader(io.StringIO(table)))[1:]

    def total(metric: str) -> float:
        return sum(float(row[metric].replace(",", "") or 0) for row in rows)

    return Counters(
        kernels=len(rows),
        fp32_flops=sum(weight * total(metric) for metric, weight in FLOPS.items()),
        dram_bytes=sum(total(metric) for metric in DRAM),
        kernel_seconds=total(DURATION) / 1e9,
    )
