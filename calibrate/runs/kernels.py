"""The kernels of an iteration, summed up from a trace in Chrome's format as PyTorch's profiler writes it."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Event = Mapping[str, Any]
PHASE_PREFIX = "phase:"
KINDS = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "set"}


@dataclass(frozen=True)
class KernelRow:
    phase: str
    kind: str
    name: str
    calls: float
    """Per iteration."""
    mean_us: float
    share: float
    """Of the time of everything that ran on the device."""


@dataclass(frozen=True)
class KernelSummary:
    """Per iteration."""

    busy_seconds: float
    """Time in which at least one kernel ran."""
    phase_seconds: Mapping[str, float]
    """Time in which at least one kernel of the phase ran. cuDNN runs the layers of a recurrent stack side by side."""
    rows: Sequence[KernelRow]


def summarize(trace: Mapping[str, Any], iterations: int) -> KernelSummary:
    events: Sequence[Event] = trace["traceEvents"]
    ran = [event for event in events if event.get("cat") in KINDS]
    phase_of = _PhaseOfLaunch(events)
    totals: dict[tuple[str, str, str], tuple[int, float]] = {}
    in_phase: dict[str, list[Event]] = {}
    for event in ran:
        phase, kind = phase_of(event), KINDS[event["cat"]]
        calls, us = totals.get((phase, kind, event["name"]), (0, 0.0))
        totals[phase, kind, event["name"]] = (calls + 1, us + event["dur"])
        if kind == "kernel" and phase:
            in_phase.setdefault(phase, []).append(event)
    all_us = sum(us for _, us in totals.values())
    rows = [
        KernelRow(phase, kind, name, calls / iterations, us / calls, us / all_us)
        for (phase, kind, name), (calls, us) in totals.items()
    ]
    rows.sort(key=lambda row: (-row.share, row.phase, row.name))
    busy_us = _covered(event for event in ran if event["cat"] == "kernel")
    return KernelSummary(
        busy_seconds=busy_us / 1e6 / iterations,
        phase_seconds={phase: _covered(events) / 1e6 / iterations for phase, events in sorted(in_phase.items())},
        rows=rows,
    )


class _PhaseOfLaunch:
    """The phase in which the host launched a kernel. Backward runs on a thread of its own, so time decides."""

    def __init__(self, events: Sequence[Event]) -> None:
        ranges = sorted(
            (event["ts"], event["ts"] + event["dur"], event["name"].removeprefix(PHASE_PREFIX))
            for event in events
            if event.get("cat") == "user_annotation" and event["name"].startswith(PHASE_PREFIX)
        )
        self._starts = [start for start, _, _ in ranges]
        self._ranges = ranges
        self._launches = {
            event["args"]["correlation"]: event["ts"]
            for event in events
            if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {})
        }

    def __call__(self, kernel: Event) -> str:
        launched = self._launches.get(kernel.get("args", {}).get("correlation"))
        if launched is None:
            return ""
        index = bisect.bisect_right(self._starts, launched) - 1
        if index < 0 or launched > self._ranges[index][1]:
            return ""
        return self._ranges[index][2]


def _covered(events: Iterable[Event]) -> float:
    """Length of the union of the events' intervals."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted((event["ts"], event["ts"] + event["dur"]) for event in events):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total
