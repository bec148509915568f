"""Judges the memory of captured steps: how it grows with the batch, and the largest batch between two that were tried."""

from __future__ import annotations

import csv
import io
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

from vision_errors import PRECISIONS, Predicted, framework_of
from vision_rows import Recipe, is_fit


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Returns the slope of the least-squares line through (batch, memory): memory of a sample."""
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def slope_errors(rows: Sequence[Predicted]) -> list[float]:
    """Returns predicted over measured slope, less one, of each step with memory measured at two batches or more."""
    by_file: dict[str, list[Predicted]] = {}
    for row in rows:
        if row.row["metric"] == "memory_used":
            by_file.setdefault(row.recipe.file, []).append(row)
    errors = []
    for group in by_file.values():
        batches = [float(row.row["batch_per_gpu"]) for row in group]
        if len(set(batches)) > 1:
            measured = slope([(batch, row.measured) for batch, row in zip(batches, group, strict=True)])
            predicted = slope([(batch, row.predicted) for batch, row in zip(batches, group, strict=True)])
            errors.append(predicted / measured - 1)
    return errors


def report_slopes(rows: Sequence[Predicted]) -> None:
    """Prints the error of memory per sample over the score part and over the fit part."""
    for part in ("score", "fit"):
        errors = slope_errors([row for row in rows if is_fit(row.row) == (part == "fit")])
        if errors:
            sizes = [abs(error) for error in errors]
            bias, median, mean = statistics.fmean(errors), statistics.median(sizes), statistics.fmean(sizes)
            print(
                f"\n{part}: memory per sample of {len(errors)} steps: median error {median:.1%}, mean {mean:.1%}, bias {bias:+.1%}"
            )


def report_totals(rows: Sequence[Predicted]) -> None:
    """Prints the error of the whole memory, with one constant added to all: the median of what is missing in the fit part, as tables
    do not say what context and libraries of their version take."""
    memory = [row for row in rows if row.row["metric"] == "memory_used"]
    missing = [row.measured - row.predicted for row in memory if is_fit(row.row)]
    if not missing:
        return
    constant = statistics.median(missing)
    for part in ("score", "fit"):
        errors = [(row.predicted + constant) / row.measured - 1 for row in memory if is_fit(row.row) == (part == "fit")]
        if errors:
            sizes = [abs(error) for error in errors]
            print(
                f"\n{part}: memory of {len(errors)} rows with {constant / 2**20:+.0f} MiB added: median error {statistics.median(sizes):.1%}, "
                f"mean {statistics.fmean(sizes):.1%}"
            )


def largest_batch(recipe: Recipe, row: dict[str, str], folder: Path, program: Path, framework: str | None) -> int | None:
    """Returns the largest batch that tbd-sim predicts to fit; None where it predicts nothing."""
    command = [
        program,
        "max-batch",
        folder / recipe.file,
        "--gpu",
        row["gpu"],
        "--framework",
        framework_of(row, framework),
    ]
    done = subprocess.run(
        [*command, "--precision", PRECISIONS[recipe.precision], "--format", "csv"], capture_output=True, text=True
    )
    lines = list(csv.DictReader(io.StringIO(done.stdout))) if done.returncode == 0 else []
    return int(lines[0]["largest_batch"] or 0) if lines else None


def report_bounds(by_recipe: dict[Recipe, list[dict[str, str]]], folder: Path, program: Path, framework: str | None) -> None:
    """Prints how often the largest batch lies between the one that ran and the one that did not, by part and memory format."""
    counts: dict[tuple[str, str, str], list[int]] = {}
    for recipe, rows in by_recipe.items():
        if not (folder / recipe.file).exists():
            continue
        largest = largest_batch(recipe, rows[0], folder, program, framework)
        for row in rows:
            key = ("fit" if is_fit(row) else "score", row["set"], row["memory_format"])
            count = counts.setdefault(key, [0, 0, 0, 0])
            if largest is None:
                count[3] += 1
            elif largest < int(row["batch_fits"]):
                count[1] += 1
            elif row["batch_fails"] and largest >= int(row["batch_fails"]):
                count[2] += 1
            else:
                count[0] += 1
    print(f"{'largest batch':40} {'rows':>5} {'between':>8} {'too small':>10} {'too large':>10} {'not predicted':>14}")
    for key, (between, small, large, missing) in sorted(counts.items()):
        rows_of = between + small + large
        share = f"{between / rows_of:8.1%}" if rows_of else f"{'':8}"
        print(f"{' '.join(key):40} {rows_of + missing:5} {share} {small:10} {large:10} {missing:14}")
