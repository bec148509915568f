"""Clocks, power and temperature of the GPU while it works, read from NVIDIA's management library."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

SM_CLOCK, MEMORY_CLOCK, GPU_TEMPERATURE = 1, 2, 0
PERIOD_SECONDS = 0.1


class _MemoryInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Nvml:
    """One GPU through NVML. A value that the driver refuses to give is None."""

    def __init__(self, library: Any, handle: ctypes.c_void_p) -> None:
        self._library = library
        self._handle = handle

    @staticmethod
    def open(uuid: str | None) -> Nvml | None:
        """The GPU of this identifier, or the first one. None if there is no NVML or it knows no such GPU."""
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return None
        handle = ctypes.c_void_p()
        if library.nvmlInit_v2() != 0:
            return None
        if uuid is None:
            status = library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))
        else:
            status = library.nvmlDeviceGetHandleByUUID(
                f"GPU-{uuid.removeprefix('GPU-')}".encode(), ctypes.byref(handle)
            )
        return Nvml(library, handle) if status == 0 else None

    def _unsigned(self, function: str, *arguments: int, kind: Any = ctypes.c_uint) -> int | None:
        value, call = kind(), getattr(self._library, function, None)
        if call is None or call(self._handle, *arguments, ctypes.byref(value)) != 0:
            return None
        return int(value.value)

    def sm_mhz(self) -> int | None:
        return self._unsigned("nvmlDeviceGetClockInfo", SM_CLOCK)

    def memory_mhz(self) -> int | None:
        return self._unsigned("nvmlDeviceGetClockInfo", MEMORY_CLOCK)

    def milliwatts(self) -> int | None:
        return self._unsigned("nvmlDeviceGetPowerUsage")

    def limit_milliwatts(self) -> int | None:
        return self._unsigned("nvmlDeviceGetEnforcedPowerLimit")

    def celsius(self) -> int | None:
        return self._unsigned("nvmlDeviceGetTemperature", GPU_TEMPERATURE)

    def throttle_reasons(self) -> int | None:
        return self._unsigned("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)

    def memory_used(self) -> int | None:
        info = _MemoryInfo()
        status = self._library.nvmlDeviceGetMemoryInfo(self._handle, ctypes.byref(info))
        return int(info.used) if status == 0 else None

    def driver(self) -> str | None:
        text = ctypes.create_string_buffer(96)
        status = self._library.nvmlSystemGetDriverVersion(text, len(text))
        return text.value.decode() if status == 0 else None


@dataclass(frozen=True)
class Sample:
    sm_mhz: int | None
    memory_mhz: int | None
    milliwatts: int | None
    celsius: int | None
    throttle_reasons: int | None


@dataclass(frozen=True)
class Telemetry:
    samples: int
    sm_mhz: float | None
    sm_mhz_min: int | None
    memory_mhz: float | None
    watts: float | None
    celsius_max: int | None
    throttle_reasons: int | None
    """All of NVML's reason bits seen; 1 is "idle", 4 the power cap, 8 and 64 slow-downs."""


def summarize(samples: Sequence[Sample]) -> Telemetry:
    def known(field: str) -> list[int]:
        return [value for s in samples if (value := getattr(s, field)) is not None]

    reasons = known("throttle_reasons")
    seen = 0
    for bits in reasons:
        seen |= bits
    sm, memory, power, heat = (known(f) for f in ("sm_mhz", "memory_mhz", "milliwatts", "celsius"))
    return Telemetry(
        samples=len(samples),
        sm_mhz=median(sm) if sm else None,
        sm_mhz_min=min(sm, default=None),
        memory_mhz=median(memory) if memory else None,
        watts=mean(power) / 1000 if power else None,
        celsius_max=max(heat, default=None),
        throttle_reasons=seen if reasons else None,
    )


class Sampler:
    """Context that reads the GPU ten times a second on a thread of its own."""

    def __init__(self, nvml: Nvml | None) -> None:
        self._nvml = nvml
        self._samples: list[Sample] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        nvml = self._nvml
        while nvml is not None and not self._stop.wait(PERIOD_SECONDS):
            self._samples.append(
                Sample(
                    nvml.sm_mhz(),
                    nvml.memory_mhz(),
                    nvml.milliwatts(),
                    nvml.celsius(),
                    nvml.throttle_reasons(),
                )
            )

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def result(self) -> Telemetry:
        return summarize(self._samples)
