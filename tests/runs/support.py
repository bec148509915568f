"""Shared by the tests of the training runs: their folder on the import path, and entries as a GPU would give them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

RUNS = Path(__file__).resolve().parents[2] / "calibrate" / "runs"
sys.path.insert(0, str(RUNS))

HAS_TORCH = importlib.util.find_spec("torch") is not None
NO_TORCH = "PyTorch is not installed"

ENVIRONMENT = {
    "gpu": "h200",
    "gpu_name": "NVIDIA H200",
    "memory_bytes": 150_000_000_000,
    "power_limit_watts": 700.0,
    "version": "2.11.0, CUDA 13.0, cuDNN 9.19.0, driver 580.1",
    "host": "a processor",
    "cpus": 16,
}


def measured() -> dict[str, Any]:
    """What `measure` returns for one configuration; the numbers are made up."""
    return {
        "iteration_seconds": [0.02, 0.021, 0.019],
        "iteration": {"median": 0.02, "mad": 0.001},
        "wall_seconds": 0.06,
        "issue_seconds": 0.01,
        "cpu_seconds": 0.06,
        "cpu_utilization": 0.0625,
        "telemetry": {"samples": 3, "sm_mhz": 1980, "memory_mhz": 3201, "watts": 512.4},
        "loss_finite": True,
        "device_memory_used": 9_000_000_000,
        "phases": {"forward": {"median": 0.006, "mad": 0.0001}, "backward": {"median": 0.013, "mad": 0.0001}},
        "kernels": {
            "busy_seconds": 0.015,
            "phase_seconds": {"forward": 0.005, "backward": 0.01},
            "rows": [
                {"phase": "forward", "kind": "kernel", "name": "a,b", "calls": 2.0, "mean_us": 2.5, "share": 0.25},
            ],
        },
        "seconds_after_profiler": 0.02,
        "parameters": 4,
        "trained_parameters": 4,
        "memory": {
            "weights": 16,
            "gradients": 16,
            "optimizer_state": 32,
            "aux_state": 0,
            "input_io": 8,
            "feature_maps": 100,
            "allocated_before": 0,
            "allocated_peak": 200,
            "reserved_peak": 300,
        },
        "types": {"Conv2d": ["bfloat16"], "GRU": ["float16"]},
    }


def entry(model: str = "resnet50", batch: int = 32, precision: str = "fp32", mode: str = "eager") -> dict[str, Any]:
    """A whole journal entry of a measured configuration."""
    return {
        "status": "ok",
        "key": f"{model}/b{batch}/{precision}/{mode}",
        "model": model,
        "batch": batch,
        "precision": precision,
        "mode": mode,
        "gpu": "h200",
        "environment": ENVIRONMENT,
        "time": "2026-11-21T10:00:00+00:00",
        **measured(),
    }
