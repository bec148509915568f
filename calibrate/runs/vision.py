#!/usr/bin/env python3
"""Captures the models of measured vision training, predicts each row and prints errors by group.

    vision.py capture --table ../shared/reference/vision/runs.csv --folder steps
    vision.py predict --table ... --folder steps --program build/release/simulate/tbd-sim
    vision.py bounds --table ../shared/reference/vision/bounds.csv --folder steps --program ...
    vision.py coverage --table ... --folder steps
    vision.py fixtures --folder tests/captured

`capture` and `fixtures` need PyTorch, timm and torchvision; the others do not. All go on where they stopped.
"""

from __future__ import annotations

import argparse
import os
import statistics
from pathlib import Path

import vision_capture
import vision_errors
import vision_memory
from vision_rows import FIXTURES, read, recipes


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("capture", "coverage", "predict", "bounds", "fixtures"))
    parser.add_argument("--table", type=Path, help="runs.csv or bounds.csv of the vision tables")
    parser.add_argument("--folder", type=Path, required=True, help="where step files are written and read")
    parser.add_argument("--set", action="append", default=[], help="only sets whose name begins so; may be repeated")
    parser.add_argument("--memory-format", choices=("nchw", "nhwc"), help="only rows of this format")
    parser.add_argument("--use", action="append", default=[], help="only rows of this use; may be repeated")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="processes that capture (default: one a core)"
    )
    parser.add_argument("--retry", action="store_true", help="capture again what failed")
    parser.add_argument("--program", type=Path, help="tbd-sim, for predict")
    parser.add_argument("--framework", help="predict: the framework instead of the closest to each set")
    parser.add_argument("--rows", action="store_true", help="predict: print the rows of the fit quarter one by one")
    return parser.parse_args()


def coverage(folder: Path, wanted: list[str]) -> None:
    """Prints how many steps were captured, how long each took, and what failed."""
    log = vision_capture.read_log(folder)
    lines = [log[file] for file in wanted if file in log]
    good = [line for line in lines if not line["error"]]
    seconds = sorted(float(line["seconds"]) for line in good)
    print(f"{len(wanted)} steps wanted, {len(lines)} tried, {len(good)} captured ({len(good) / max(1, len(lines)):.1%})")
    if seconds:
        below = sum(value < 5 for value in seconds) / len(seconds)
        print(f"seconds of CPU time: median {statistics.median(seconds):.1f}, largest {seconds[-1]:.1f}, below 5 s {below:.1%}")
    for line in lines:
        if line["error"]:
            print(f"{line['file']}: {line['error']}")


def main() -> None:
    options = arguments()
    if options.command == "fixtures":
        vision_capture.capture_all(FIXTURES, options.folder, options.processes, options.retry)
        vision_capture.log_path(options.folder).unlink()
        return
    if options.table is None:
        raise SystemExit(f"{options.command} needs --table, runs.csv or bounds.csv of the vision tables")
    rows = [
        row
        for row in read(options.table)
        if (not options.set or row["set"].startswith(tuple(options.set)))
        and (not options.use or row["use"] in options.use)
        and options.memory_format in (None, row["memory_format"])
    ]
    by_recipe = recipes(rows)
    if options.command == "capture":
        vision_capture.capture_all(list(by_recipe), options.folder, options.processes, options.retry)
    if options.command in ("capture", "coverage"):
        coverage(options.folder, [recipe.file for recipe in by_recipe])
    if options.command in ("predict", "bounds") and options.program is None:
        raise SystemExit(f"{options.command} needs --program, the path of tbd-sim")
    if options.command == "predict":
        predicted = vision_errors.predict(by_recipe, options.folder, options.program, options.framework)
        judged = vision_errors.of_unchanged_models(predicted, vision_capture.read_log(options.folder))
        vision_errors.report(judged, options.rows)
        vision_memory.report_slopes(judged)
        vision_memory.report_totals(judged)
    if options.command == "bounds":
        vision_memory.report_bounds(by_recipe, options.folder, options.program, options.framework)


if __name__ == "__main__":
    main()
