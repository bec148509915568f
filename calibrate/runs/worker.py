"""The process that trains. `train.py` starts it, and starts another if a configuration takes this one down."""

from __future__ import annotations

import argparse
import faulthandler
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from errors import CannotRun, OutOfTime
from exits import CANNOT_WRITE, DEVICE_LOST, NO_GPU, OK
from journal import Entry, Journal
from plan import Configuration, estimated_seconds
from rows import percent, table, write_tables

PATIENCE = 10.0
"""A configuration that takes this many times its estimate is taken for hung,"""
LEAST_PATIENCE_SECONDS = 150.0
"""but not before this."""
GRACE_SECONDS = 45.0
"""Nor does anything run longer than this beyond the end of the time box."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Worker:
    out: Path
    environment: Mapping[str, Any]
    measure: Callable[[Configuration], Mapping[str, Any]]
    device_answers: Callable[[], bool]
    deadline: float
    """Seconds since the epoch."""
    retry_before: float = 0.0
    """What was skipped, failed or crashed before this time is tried again."""

    @property
    def journal(self) -> Journal:
        return Journal(self.out / "journal.jsonl")

    def run(self, configurations: Sequence[Configuration]) -> int:
        say(f"{self.environment['gpu_name']}: {self.environment['version']}")
        known = self.journal.latest(self.environment["gpu"])
        for number, configuration in enumerate(configurations, 1):
            label = f"[{number}/{len(configurations)}] {configuration.key}"
            before = known.get(configuration.key)
            if before and not self._again(before):
                say(f"{label}: {before['status']} already, see the journal")
                continue
            left = self.deadline - time.time()
            if estimated_seconds(configuration) > left:
                say(f"{label}: not started, {max(left, 0):.0f} s left")
                continue
            say(f"{label} ...")
            if not self._one(configuration):
                return DEVICE_LOST
        self._conclude(configurations)
        return OK

    def _conclude(self, configurations: Sequence[Configuration]) -> None:
        gpu = self.environment["gpu"]
        known = self.journal.latest(gpu)
        statuses = Counter(known[c.key]["status"] if c.key in known else "left" for c in configurations)
        say(", ".join(f"{count} {status}" for status, count in statuses.items()) + f"; rows in {table(self.out, gpu)}")
        if statuses["left"]:
            say("the same command goes on with what is left")

    def _again(self, entry: Entry) -> bool:
        return entry["status"] != "ok" and datetime.fromisoformat(entry["time"]).timestamp() < self.retry_before

    def _one(self, configuration: Configuration) -> bool:
        """Measures and journals one configuration; false if the device does not answer any more."""
        self.journal.append(self._entry(configuration, "started"))
        began = time.time()
        patience = max(PATIENCE * estimated_seconds(configuration), LEAST_PATIENCE_SECONDS)
        patience = min(patience, self.deadline - began + GRACE_SECONDS)
        faulthandler.dump_traceback_later(patience, exit=True, file=sys.__stderr__)
        try:
            entry = self._measured(configuration)
        finally:
            faulthandler.cancel_dump_traceback_later()
        if entry is None:
            return True
        entry["seconds"] = round(time.time() - began, 1)
        self.journal.append(entry)
        write_tables(self.out, entry["gpu"], self.journal.latest(entry["gpu"]).values())
        say(f"    {_summary(entry)}")
        return entry["status"] != "failed" or self.device_answers()

    def _measured(self, configuration: Configuration) -> Entry | None:
        try:
            return {**self._entry(configuration, "ok"), **self.measure(configuration)}
        except OutOfTime as error:
            say(f"    left for another call: {error}")
            return None
        except CannotRun as error:
            return self._entry(configuration, "skipped") | {"why": str(error)}
        except Exception as error:  # whatever this one did, the others are still worth measuring
            say(traceback.format_exc())
            return self._entry(configuration, "failed") | {"why": f"{type(error).__name__}: {error}"}

    def _entry(self, configuration: Configuration, status: str) -> Entry:
        return {
            "status": status,
            "key": configuration.key,
            **asdict(configuration),
            "gpu": self.environment["gpu"],
            "environment": dict(self.environment),
            "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }


def _summary(entry: Entry) -> str:
    if entry["status"] != "ok":
        return f"{entry['status']}: {entry['why']}"
    if "counters" in entry:
        counted = entry["counters"]
        return f"{counted['fp32_flops'] / 1e9:.1f} GFLOP, {counted['dram_bytes'] / 1e9:.2f} GB of DRAM traffic"
    middle, mad = entry["iteration"]["median"], entry["iteration"]["mad"]
    busy = f", GPU busy {percent(entry['kernels']['busy_seconds'], middle)}" if entry.get("kernels") else ""
    return f"{1000 * middle:.2f} ms (MAD {percent(mad, middle)}){busy}, {entry['seconds']} s in all"


def no_gpu_reason() -> str | None:
    try:
        import torch
    except ModuleNotFoundError:
        return "PyTorch is not installed for this Python"
    except (ImportError, OSError) as error:
        return f"PyTorch does not load: {error}"
    return None if torch.cuda.is_available() else "PyTorch finds no NVIDIA GPU"


def _on_this_gpu(options: argparse.Namespace) -> Worker:
    import torch

    from environment import describe
    from measure import Bench, measure
    from telemetry import Nvml

    def device_answers() -> bool:
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True

    device = torch.device("cuda", 0)
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)  # since PyTorch 2.4
    nvml = Nvml.open(str(uuid) if uuid else None)
    snapshots = options.out / "snapshots" if options.snapshots else None
    bench = Bench(device, nvml, options.deadline, snapshots)
    environment = asdict(describe(device, nvml))
    return Worker(
        out=options.out,
        environment=environment,
        measure=lambda configuration: measure(configuration, bench),
        device_answers=device_answers,
        deadline=options.deadline,
        retry_before=options.retry_before,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("deadline", type=float, help="seconds since the epoch")
    parser.add_argument("keys", nargs="+", help="such as resnet50/b32/fp32/eager")
    parser.add_argument("--retry-before", type=float, default=0.0, metavar="SECONDS", help="since the epoch")
    parser.add_argument("--snapshots", action="store_true")
    options = parser.parse_args(arguments)
    if reason := no_gpu_reason():
        say(f"nothing measured: {reason}")
        return NO_GPU
    try:
        return _on_this_gpu(options).run([Configuration.parse(key) for key in options.keys])
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except OSError as error:
        say(f"{options.out}: cannot write: {error.strerror or error}; what was measured before is kept")
        return CANNOT_WRITE


if __name__ == "__main__":
    sys.exit(main())
