"""Which GPU and which software the runs come from."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

import torch

from gpu_names import catalogue_name
from telemetry import Nvml


@dataclass(frozen=True)
class Environment:
    gpu: str
    """As the catalogue of GPUs names it; "cpu" for a rehearsal without one."""
    gpu_name: str
    memory_bytes: int | None
    power_limit_watts: float | None
    version: str
    host: str
    cpus: int


def _processor() -> str:
    try:
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match.group(1) if match else platform.machine()


def _cudnn() -> str:
    version = torch.backends.cudnn.version() or 0
    major, rest = divmod(version, 10000 if version >= 90000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def describe(device: torch.device, nvml: Nvml | None) -> Environment:
    cpus = len(os.sched_getaffinity(0))
    if device.type != "cuda":
        return Environment("cpu", "none", None, None, torch.__version__, _processor(), cpus)
    properties = torch.cuda.get_device_properties(device)
    limit = nvml.limit_milliwatts() if nvml else None
    driver = (nvml.driver() if nvml else None) or "unknown"
    return Environment(
        gpu=catalogue_name(properties.name),
        gpu_name=properties.name,
        memory_bytes=properties.total_memory,
        power_limit_watts=limit / 1000 if limit is not None else None,
        version=f"{torch.__version__}, CUDA {torch.version.cuda}, cuDNN {_cudnn()}, driver {driver}",
        host=_processor(),
        cpus=cpus,
    )
