"""Records what runs on the GPU, with PyTorch's profiler, which reads CUPTI."""

from __future__ import annotations

import json
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from execution import Step
from kernels import PHASE_PREFIX


def _phase(name: str) -> AbstractContextManager[None]:
    return record_function(PHASE_PREFIX + name)


def record(step: Step, iterations: int) -> dict[str, Any]:
    """A Chrome trace of that many steps, after one to warm the profiler up."""
    traces: list[dict[str, Any]] = []

    def keep(profiler: profile) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "trace.json"
            profiler.export_chrome_trace(str(path))
            traces.append(json.loads(path.read_text(errors="replace"), strict=False))

    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    once = schedule(wait=0, warmup=1, active=1, repeat=1)
    with profile(activities=activities, schedule=once, on_trace_ready=keep) as profiler:
        step(_phase)
        torch.cuda.synchronize()
        profiler.step()
        for _ in range(iterations):
            step(_phase)
        torch.cuda.synchronize()
        profiler.step()
    return traces[0]
