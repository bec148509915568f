#!/usr/bin/env python3
"""Captures training steps of libraries that people train with, as their users write them, and predicts each.

    calibrate/runs/libraries_coverage.py -o coverage.csv --program build/release/simulate/tbd-sim [--only peft,diffusers/vae]

Needs the package tbdsim, PyTorch and the libraries of `library_recipes.py`; no GPU. A recipe of a library that is not installed is
left out. Writes a line for each: captured or the error, seconds of a core, operators, warnings; predicted at several batches on
several GPUs or the error; whether a larger batch takes no less time; operators without a lowering. Each runs in a process of its own.
"""
import argparse
import csv
import multiprocessing
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from importlib import util

from library_recipes import RECIPES

SECONDS = 120
GPUS, BATCHES = "rtx3090,a100_sxm4_80gb,h100_sxm", "8,16,32,64,128"
COLUMNS = ["recipe", "captured", "seconds", "operators", "warnings", "predicted", "falls", "without_lowering", "error"]


def times(program, file, batches):
    """Seconds of an iteration by GPU, in the order of the batches."""
    given = ["sweep", "--model", str(file), "--framework", "pytorch", "--gpu", GPUS, "--batch", batches, "--format", "csv"]
    found = {}
    for row in csv.DictReader(subprocess.run([program, *given], capture_output=True, text=True, check=True).stdout.splitlines()):
        found.setdefault(row["gpu"], []).append(float(row["iteration_time"]))
    return found


def without_lowering(program, file, batch):
    """The note on operators that are charged by their bytes alone; empty where there are none."""
    given = ["kernels", str(file), "--framework", "pytorch", "--gpu", "h100_sxm", "--batch", batch]
    said = subprocess.run([program, *given], capture_output=True, text=True, check=False)
    lines = [line for line in (said.stdout + said.stderr).splitlines() if "without a lowering" in line]
    return lines[0].split(": ")[-1] if lines else ""


def late(*_):
    raise TimeoutError(f"not done in {SECONDS} s of a core")


def tried(name, program, send):
    """Sends the line of a recipe."""
    import tbdsim

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)

    make, options = RECIPES[name]
    row = {"recipe": name, "captured": False}
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step = tbdsim.capture(make(), name=name, **options)
        row |= {"captured": True, "seconds": f"{time.process_time() - begin:.2f}", "operators": len(step.operators), "warnings": len(step.warnings)}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "model.step.json.gz")
            step.save(file)
            batches = str(options["batches"][0]) if "batches" in options else BATCHES
            found = times(program, file, batches)
            row |= {"predicted": True, "falls": any(b < a for of in found.values() for a, b in zip(of, of[1:]))}
            row["without_lowering"] = without_lowering(program, file, batches.split(",")[0])
    except subprocess.CalledProcessError as error:
        row |= {"predicted": False, "error": error.stderr.strip().split("\n")[0]}
    except Exception as error:  # whatever a library raises is what is asked about
        row["error"] = f"{type(error).__name__}: {error}".split("\n")[0]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    send.send(row)


def line_of(name, program):
    """What a process finds of a recipe, or that it died or took too long."""
    receive, send = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=tried, args=(name, program, send))
    process.start()
    send.close()
    try:
        return receive.recv() if receive.poll(10 * SECONDS) else {"recipe": name, "captured": False, "error": "it waits for something"}
    except EOFError:
        return {"recipe": name, "captured": False, "error": "the process died"}
    finally:
        process.kill()
        process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="the CSV file to write")
    parser.add_argument("--program", default="tbd-sim", help="the program tbd-sim")
    parser.add_argument("--only", default="", help="these libraries or recipes alone, as peft,diffusers/vae")
    given = parser.parse_args()
    only = tuple(filter(None, given.only.split(",")))
    asked = [name for name in RECIPES if not only or name.startswith(only)]
    asked = [name for name in asked if name.startswith("plain/") or util.find_spec(name.split("/")[0])]
    captured = 0
    with open(given.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for place, name in enumerate(asked, 1):
            print(f"\r{place} of {len(asked)}: {name:<50}", end="", file=sys.stderr, flush=True)
            row = line_of(name, given.program)
            captured += row["captured"]
            writer.writerow(row)
            file.flush()
    print(f"\n{captured} of {len(asked)} captured", file=sys.stderr)


if __name__ == "__main__":
    main()
