#!/usr/bin/env python3
"""Trains eight models on the NVIDIA GPU at hand and writes what a simulator of training can be judged by.

python3 calibrate/runs/train.py --minutes 8 -o OUT_DIR
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from catalogue import BY_NAME, MODELS, MODES, PRECISIONS
from exits import CANNOT_WRITE, DEVICE_LOST, NO_GPU, OK
from journal import Journal
from plan import Configuration, estimated_seconds, full_plan, select

WORKER = Path(__file__).with_name("worker.py")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, metavar="OUT_DIR", help="folder for the journal and the two tables")
    parser.add_argument("--minutes", type=_positive, default=8.0, help="time box; the most valuable runs come first")
    parser.add_argument("--model", choices=BY_NAME, metavar="NAME", help="only this model (see --list)")
    parser.add_argument("--batch", type=_positive_int, help="only this batch size, planned or not")
    parser.add_argument("--precision", choices=PRECISIONS)
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--retry", action="store_true", help="try again what was skipped, failed or crashed")
    parser.add_argument("--snapshots", action="store_true", help="also write the allocator's memory snapshots")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--list", action="store_true", help="list the models and stop")
    other.add_argument("--dry-run", action="store_true", help="print the plan in order with estimated seconds and stop")
    other.add_argument("--smoke", action="store_true", help="train one tiny step of every model on the CPU and stop")
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def _positive_int(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def print_models() -> None:
    for model in MODELS:
        batches = ", ".join(map(str, model.batches))
        print(f"{model.name}: {model.variant}")
        print(f"    {model.parameters:,} parameters; batch {batches} {model.batch_means}; {', '.join(model.modes)}")


def print_plan(configurations: Sequence[Configuration], minutes: float) -> None:
    total = 0.0
    for number, configuration in enumerate(configurations, 1):
        seconds = estimated_seconds(configuration)
        total += seconds
        fits = "" if total <= 60 * minutes else "   beyond the time box"
        print(f"{number:3}  {configuration.key:40} {seconds:5.0f} s  {total:6.0f} s{fits}")
    print("estimates for a card of the Hopper class; the runs themselves keep to the clock")


def run(worker: Sequence[str], journal: Journal, deadline: float) -> int:
    """Lets a worker go through the plan. Where one dies, its configuration is marked and a new one goes on."""
    while time.time() < deadline:
        known = len(journal.entries())
        code = _run_process(worker)
        if code in (OK, CANNOT_WRITE, NO_GPU):
            return code
        if time.time() > deadline:
            print("stopped at the end of the time box; the same command goes on from there", file=sys.stderr)
            return OK
        if code != DEVICE_LOST:
            unfinished = journal.unfinished(known)
            if unfinished is None:
                print(f"the worker ended with code {code} before it started a run", file=sys.stderr)
                return code
            why = f"the process ended with code {code}, or was stopped because it hung"
            journal.append(unfinished | {"status": "crashed", "why": why})
            print(f"    crashed: {why}", file=sys.stderr)
    return OK


def _run_process(command: Sequence[str]) -> int:
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        print_models()
        return OK
    if options.smoke:
        return _smoke(options.model)
    if options.model and options.mode and options.mode not in BY_NAME[options.model].modes:
        parser.error(f"{options.model} has no mode {options.mode}; it has {', '.join(BY_NAME[options.model].modes)}")
    chosen = select(full_plan(), options.model, options.batch, options.precision, options.mode)
    if options.dry_run:
        print_plan(chosen, options.minutes)
        return OK
    if options.out is None:
        parser.error("-o OUT_DIR is needed")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"{options.out}: cannot make this folder: {error.strerror}", file=sys.stderr)
        return CANNOT_WRITE
    now = time.time()
    deadline = now + 60 * options.minutes
    worker = [sys.executable, str(WORKER), str(options.out), str(deadline), *(c.key for c in chosen)]
    worker += ["--retry-before", str(int(now))] if options.retry else []
    worker += ["--snapshots"] if options.snapshots else []
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))
    try:
        return run(worker, Journal(options.out / "journal.jsonl"), deadline)
    except OSError as error:
        print(
            f"{options.out}: cannot write: {error.strerror or error}; what was measured before is kept",
            file=sys.stderr,
        )
        return CANNOT_WRITE
    except KeyboardInterrupt:
        print("stopped; what was measured is kept, and the same command goes on from there", file=sys.stderr)
        return 128 + signal.SIGINT


def _smoke(name: str | None) -> int:
    if importlib.util.find_spec("torch") is None:
        print("skipped: PyTorch is not installed for this Python")
        return NO_GPU
    from smoke import smoke

    return 1 if smoke([BY_NAME[name]] if name else MODELS) else OK


if __name__ == "__main__":
    sys.exit(main())
