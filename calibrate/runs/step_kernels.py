"""The GPU's work of one training step by operator: which kernel each call of PyTorch launched, on which shapes, how long it took."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: calls: launches a step; time_us: mean of a launch; the arguments are as PyTorch's profiler writes them
KERNEL_COLUMNS = "model layout batch size precision operator shapes strides types arguments kernel calls time_us".split()

Row = dict[str, Any]


def kernel_rows(torch: Any, step: Callable[[], None], steps: int = 2) -> list[Row]:
    """Profiles `steps` calls of `step`; a row for each operator, shapes and kernel, in order of first launch."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return rows_of_trace(events, steps)


def rows_of_trace(events: list[dict[str, Any]], steps: int) -> list[Row]:
    """The rows of a trace's events; kernels without an operator have an empty one."""
    operators = {e["args"]["External id"]: e for e in events if e.get("cat") == "cpu_op" and "External id" in e.get("args", {})}
    times: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
    device = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    for event in sorted(device, key=lambda e: e["ts"]):
        operator = operators.get(event["args"].get("External id"), {})
        arguments = operator.get("args", {})
        fields = (arguments.get(name, []) for name in ("Input Dims", "Input Strides", "Input type", "Concrete Inputs"))
        key = (operator.get("name", ""), *(json.dumps(field, separators=(",", ":")) for field in fields), event["name"])
        times[key].append(event["dur"])
    names = "operator shapes strides types arguments kernel".split()
    return [dict(zip(names, key, strict=True)) | {"calls": len(t) / steps, "time_us": sum(t) / len(t)} for key, t in times.items()]
