"""Time on the device's own clock: CUDA events on a GPU, the host clock elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch


@dataclass(frozen=True)
class Spread:
    median: float
    mad: float
    """Median absolute deviation from the median."""

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        middle = median(values)
        return Spread(middle, median(abs(value - middle) for value in values))


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class _HostMark:
    """The part of torch.cuda.Event that is used here."""

    def __init__(self) -> None:
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: _HostMark) -> float:
        return 1000 * (end._time - self._time)


class Marks:
    """Points in the device's stream of work. Setting one does not wait; reading the times does."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._marks: list[Any] = []

    def set(self) -> int:
        if self._device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._marks.append(event)
        else:
            self._marks.append(_HostMark())
        return len(self._marks) - 1

    def seconds(self, first: int, last: int) -> float:
        begin, end = self._marks[first], self._marks[last]
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000


class PhaseClock:
    """A `Phase` that notes how long each phase occupies the device's stream, idle gaps included."""

    def __init__(self, device: torch.device) -> None:
        self._marks = Marks(device)
        self._spans: list[tuple[str, int, int]] = []

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        first = self._marks.set()
        yield
        self._spans.append((name, first, self._marks.set()))

    def totals(self) -> dict[str, float]:
        """Seconds of each phase, its occurrences added up."""
        totals: dict[str, float] = {}
        for name, first, last in self._spans:
            totals[name] = totals.get(name, 0.0) + self._marks.seconds(first, last)
        return totals
