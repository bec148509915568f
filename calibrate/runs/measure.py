"""Measures one configuration: build, warm up, memory, timed iterations, phases, kernels."""

from __future__ import annotations

import gc
import importlib
import math
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import counters
import kernels
import memory
import precision
import profiler
from catalogue import BY_NAME
from clock import Marks, PhaseClock, Spread, synchronize
from errors import CannotRun, OutOfTime
from execution import Step, prepare
from plan import Configuration, iterations_for
from telemetry import Nvml, Sampler
from workload import Options, Workload, no_phases


@dataclass(frozen=True)
class Bench:
    """Where and how thoroughly to measure."""

    device: torch.device
    nvml: Nvml | None
    deadline: float
    """Seconds since the epoch."""
    snapshots: Path | None = None
    warm_up_seconds: float = 0.5
    warm_up_steps: int = 3
    most_steps: int | None = None
    """Cap on every loop, for a rehearsal."""

    def steps(self, wanted: int) -> int:
        return wanted if self.most_steps is None else min(wanted, self.most_steps)


def build(configuration: Configuration, device: torch.device, sizes: Mapping[str, int]) -> Workload:
    precision.apply(configuration.precision, device)
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    options = Options(device, configuration.precision, capturable=configuration.mode == "cuda_graph")
    module = importlib.import_module(f"models.{BY_NAME[configuration.model].module}")
    return module.build(options, **{"batch": configuration.batch, **sizes})


def measure(configuration: Configuration, bench: Bench, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The measured part of a journal entry. Raises CannotRun, OutOfTime, or what PyTorch raises."""
    gc.collect()
    memory.release()
    if configuration.mode == "counters":
        return {"counters": asdict(counters.count(configuration, bench.deadline))}
    try:
        return _trained(configuration, bench, sizes or {})
    except torch.cuda.OutOfMemoryError as error:
        raise CannotRun(f"too little GPU memory: {str(error).split('. ')[0]}") from None


def _trained(configuration: Configuration, bench: Bench, sizes: Mapping[str, int]) -> dict[str, Any]:
    before = memory.allocated(bench.device)
    workload = build(configuration, bench.device, sizes)
    types = precision.observed_types(workload.modules, lambda: workload.step(no_phases))
    step = prepare(workload, configuration.mode, bench.device)
    expected = _warm_up(step, bench)
    snapshot = bench.snapshots / f"{configuration.key.replace('/', '_')}.pickle" if bench.snapshots else None
    used = memory.measure(workload, step, bench.device, before, snapshot)
    result = _timed(step, bench, expected)
    result["device_memory_used"] = bench.nvml.memory_used() if bench.nvml else None
    if configuration.mode != "cuda_graph":
        result["phases"] = _phases(step, bench, expected)
    if bench.device.type == "cuda":
        result |= _profiled(step, bench, expected)
    parameters = [p for module in workload.modules for p in module.parameters()]
    return result | {
        "parameters": sum(p.numel() for p in parameters),
        "trained_parameters": sum(p.numel() for p in parameters if p.requires_grad),
        "memory": asdict(used),
        "types": types,
    }


def _warm_up(step: Step, bench: Bench) -> float:
    """Steps until the clocks have risen and algorithms are chosen; returns the seconds of a settled iteration."""
    start = time.perf_counter()
    done, seconds = 0, math.inf
    while done < bench.steps(bench.warm_up_steps) or time.perf_counter() - start < bench.warm_up_seconds:
        begin = time.perf_counter()
        step(no_phases)
        synchronize(bench.device)
        seconds = min(seconds, time.perf_counter() - begin)
        done += 1
    needed = 1.5 * seconds * (iterations_for(seconds) + 15)
    if bench.most_steps is None and time.time() + needed > bench.deadline:
        raise OutOfTime(f"needs about {needed:.0f} s more")
    return seconds


def _timed(step: Step, bench: Bench, expected: float) -> dict[str, Any]:
    """Iterations back to back; the host never waits for the device in between."""
    iterations = bench.steps(iterations_for(expected))
    marks = Marks(bench.device)
    synchronize(bench.device)
    with Sampler(bench.nvml) as sampler:
        wall, cpu = time.perf_counter(), time.process_time()
        marks.set()
        for _ in range(iterations):
            loss = step(no_phases)
            marks.set()
        issued = time.perf_counter() - wall
        synchronize(bench.device)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    times = [marks.seconds(i, i + 1) for i in range(iterations)]
    cpus = len(os.sched_getaffinity(0))
    return {
        "iteration_seconds": [float(f"{seconds:.6g}") for seconds in times],
        "iteration": asdict(Spread.of(times)),
        "wall_seconds": wall,
        "issue_seconds": issued,
        "cpu_seconds": cpu,
        "cpu_utilization": cpu / wall / cpus,
        "telemetry": asdict(sampler.result()),
        "loss_finite": bool(torch.isfinite(loss)),
    }


def _few(bench: Bench, wanted: int, expected: float, seconds: float) -> int:
    return bench.steps(max(1, min(wanted, int(seconds / expected))))


def _phases(step: Step, bench: Bench, expected: float) -> dict[str, Any]:
    clocks = []
    for _ in range(_few(bench, 10, expected, 2.0)):
        clock = PhaseClock(bench.device)
        step(clock)
        clocks.append(clock)
    synchronize(bench.device)
    totals = [clock.totals() for clock in clocks]
    return {name: asdict(Spread.of([total[name] for total in totals])) for name in totals[0]}


def _profiled(step: Step, bench: Bench, expected: float) -> dict[str, Any]:
    iterations = _few(bench, 3, expected, 0.3)
    try:
        summary = kernels.summarize(profiler.record(step, iterations), iterations)
    except Exception as error:  # what was timed before is kept, whatever the profiler does
        print(f"    no kernels recorded: {type(error).__name__}: {error}", file=sys.stderr)
        return {"kernels": None}
    if not summary.rows:
        print("    no kernels recorded: CUPTI gave nothing (not permitted, or not installed)", file=sys.stderr)
        return {"kernels": None}
    after = Marks(bench.device)
    after.set()
    for _ in range(_few(bench, 10, expected, 1.0)):
        step(no_phases)
    last = after.set()
    return {"kernels": asdict(summary), "seconds_after_profiler": after.seconds(0, last) / last}
