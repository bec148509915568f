"""Captures the steps of the vision tables into a folder, in one process a core; what is there already is kept."""

from __future__ import annotations

import csv
import multiprocessing
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from vision_rows import Recipe

COLUMNS = ("file", "seconds", "operators", "parameters", "warnings", "error")


def _capture(job: tuple[Recipe, str]) -> tuple[str, ...]:
    """Captures one step in a worker process; returns a line of the log: COLUMNS as text, seconds of this process's CPU time."""
    recipe, folder = job
    import torch

    torch.set_num_threads(1)
    from vision_models import capture

    start = time.process_time()
    try:
        step = capture(recipe)
    except Exception as error:  # one model that fails must not end the others; the log names it
        return (
            recipe.file,
            f"{time.process_time() - start:.2f}",
            "",
            "",
            "",
            f"{type(error).__name__}: {error}".replace("\n", " ")[:300],
        )
    seconds = time.process_time() - start
    step.save(Path(folder) / recipe.file)
    parameters = sum(step.parameter_counts().values())
    return (recipe.file, f"{seconds:.2f}", str(len(step.operators)), str(parameters), "; ".join(step.warnings), "")


def log_path(folder: Path) -> Path:
    return folder / "captures.csv"


def read_log(folder: Path) -> dict[str, dict[str, str]]:
    """Returns the log by file; a later line replaces an earlier one."""
    if not log_path(folder).exists():
        return {}
    with log_path(folder).open(newline="") as file:
        return {line["file"]: line for line in csv.DictReader(file)}


def capture_all(recipes: Sequence[Recipe], folder: Path, processes: int, retry: bool) -> None:
    """Captures what the folder lacks. Errors of earlier calls are tried again where `retry` is set."""
    folder.mkdir(parents=True, exist_ok=True)
    log = read_log(folder)
    jobs = [
        (recipe, str(folder)) for recipe in recipes if not (folder / recipe.file).exists() and (retry or recipe.file not in log)
    ]
    if not log_path(folder).exists():
        log_path(folder).write_text(",".join(COLUMNS) + "\n")
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(processes, len(jobs)), maxtasksperchild=50) as pool, log_path(folder).open("a", newline="") as file:
        writer = csv.writer(file)
        for done, line in enumerate(pool.imap_unordered(_capture, jobs), 1):
            writer.writerow(line)
            file.flush()
            state = line[5] or f"{line[2]} operators"
            print(f"{done}/{len(jobs)} {line[0]}: {line[1]} s, {state}", file=sys.stderr, flush=True)
