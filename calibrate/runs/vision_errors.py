"""Predicts rows of the vision tables from captured steps with tbd-sim, and reports errors: single rows of the fit quarter alone."""

from __future__ import annotations

import csv
import math
import statistics
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vision_rows import Recipe, is_fit

#: tbd-sim's name of a precision, by that of a capture.
PRECISIONS = {"fp32": "fp32", "tf32": "tf32", "fp16": "amp", "bf16": "bf16", "pure_fp16": "fp16"}

#: tbd-sim's framework, by the beginning of a set's name: the closest version that it has.
FRAMEWORKS = {
    "timm_train_pt110": "pytorch_1_10",
    "timm_train": "pytorch_1_12",
    "gpumemnet": "pytorch",
    "pycls": "pytorch_1_3",  # 1.6 with CUDA 10 and cuDNN 7.6, as that has them
    "torchvision": "pytorch_1_3",  # 1.5 to 1.7 with CUDA 10.2 and cuDNN 7.6.5
}

#: The same where a set's rows of one GPU ran another version: NGC 20.10, PyTorch 1.7; a nightly 1.0 with cuDNN 7.3.1 (2018); on an
#: RTX 2080 Ti either that or 1.4 with cuDNN 7.6.0 (2020), which pads no channels either.
FRAMEWORKS_ON = {
    ("torchvision_zoo_fwd_bwd", "a100_sxm_40gb"): "pytorch_ngc_1_7",
    ("torchvision_zoo_fwd_bwd", "gtx1080ti"): "pytorch_1_0",
    ("torchvision_zoo_fwd_bwd", "titanv"): "pytorch_1_0",
    ("torchvision_zoo_fwd_bwd", "rtx2080ti"): "pytorch_1_0",
}

#: Sets whose GPUs exchange gradients (DistributedDataParallel) within the time that they state.
EXCHANGED = ("pycls",)

#: tbd-sim's unit, by the beginning of the table's, and what the table's number is multiplied by.
UNITS = {"images/s": ("images/s", 1.0), "s (": ("s", 1.0), "ms": ("ms", 1.0), "MiB": ("bytes (device memory in use)", 2.0**20)}

_COLUMNS = (
    "id",
    "set",
    "gpu",
    "framework",
    "model",
    "variant",
    "precision",
    "batch_per_gpu",
    "gpus",
    "machines",
    "metric",
    "unit",
    "value",
)


@dataclass(frozen=True)
class Predicted:
    """A row with its prediction, both in the table's unit; `inside`: whether it lies in the 80 % interval."""

    row: dict[str, str]
    recipe: Recipe
    measured: float
    predicted: float
    inside: bool

    @property
    def error(self) -> float:
        """Returns predicted over measured, less one; of times the other way round, so that above zero is always too fast."""
        ratio = self.predicted / self.measured
        return (1 / ratio if self.row["metric"] == "iteration_time" else ratio) - 1


def framework_of(row: dict[str, str], override: str | None) -> str:
    """Returns tbd-sim's framework for a row's set and GPU, or the one that was asked for."""
    own = FRAMEWORKS_ON.get((row["set"], row["gpu"]))
    return override or own or next(framework for start, framework in FRAMEWORKS.items() if row["set"].startswith(start))


def gpus_of(row: dict[str, str]) -> str:
    """Returns the number of GPUs of the step that a row timed: its own where they exchange gradients, else one."""
    return row["gpus"] if row["set"].startswith(EXCHANGED) else "1"


def _unit(text: str) -> tuple[str, float]:
    return next((unit for start, unit in UNITS.items() if text.startswith(start)), (text, 1.0))


def predict(
    by_recipe: dict[Recipe, list[dict[str, str]]], folder: Path, program: Path, framework: str | None = None
) -> list[Predicted]:
    """Returns every row whose step is in the folder and whose prediction is `ok`; prints how many others there are, by reason."""
    known = {row["id"]: (row, recipe) for recipe, rows in by_recipe.items() if (folder / recipe.file).exists() for row in rows}
    with tempfile.TemporaryDirectory() as directory:
        scenarios, output = Path(directory, "rows.csv"), Path(directory, "predicted.csv")
        with scenarios.open("w", newline="") as file:
            writer = csv.DictWriter(file, _COLUMNS)
            writer.writeheader()
            for row, recipe in known.values():
                unit, factor = _unit(row["unit"])
                columns = {name: row.get(name, "") for name in ("id", "set", "gpu", "batch_per_gpu", "metric")}
                columns |= {"model": str((folder / recipe.file).resolve()), "precision": PRECISIONS[recipe.precision]}
                columns |= {"framework": framework_of(row, framework), "gpus": gpus_of(row), "machines": "1"}
                writer.writerow(columns | {"unit": unit, "value": repr(float(row["value"]) * factor)})
        subprocess.run([program, "predict", "--scenarios", scenarios, "-o", output], check=True)
        with output.open(newline="") as file:
            lines = list(csv.DictReader(file))
    found: list[Predicted] = []
    reasons: dict[str, int] = {}
    for line in lines:
        if line["status"] != "ok":
            reasons[line["status"]] = reasons.get(line["status"], 0) + 1
            continue
        low, value, high, measured = (float(line[name]) for name in ("predicted_low", "predicted", "predicted_high", "value"))
        found.append(Predicted(*known[line["id"]], measured, value, low <= measured <= high))
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1]):
        print(f"{count} rows not predicted: {reason}")
    return found


def has_changed(predicted: Predicted, parameters: dict[str, int]) -> bool:
    """Whether the model of today has other weights than the one that was measured: more than 1 % and 20,000 apart."""
    stated, now = predicted.row.get("params_millions", ""), parameters.get(predicted.recipe.file)
    return bool(stated) and now is not None and abs(now / 1e6 - float(stated)) > max(0.01 * float(stated), 0.02)


def _ranks(values: tuple[float, ...]) -> list[int]:
    ranks = [0] * len(values)
    for rank, i in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        ranks[i] = rank
    return ranks


def rank_correlation(pairs: Iterable[tuple[float, float]]) -> float:
    """Returns Spearman's rank correlation; nan of fewer than three pairs."""
    measured, predicted = zip(*pairs, strict=True)
    if len(measured) < 3:
        return math.nan
    return statistics.correlation(_ranks(measured), _ranks(predicted))


def _line(name: str, rows: list[Predicted]) -> str:
    errors = sorted(abs(row.error) for row in rows)
    bias = statistics.fmean(row.error for row in rows)
    inside = statistics.fmean(row.inside for row in rows)
    rank = rank_correlation((row.measured, row.predicted) for row in rows)
    at_90 = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
    numbers = f"{statistics.median(errors):7.1%} {statistics.fmean(errors):7.1%} {at_90:7.1%} {errors[-1]:8.1%} {bias:+8.1%} {inside:7.0%} {rank:6.3f}"
    return f"{name:44} {len(rows):5} {numbers}"


def of_unchanged_models(predicted: list[Predicted], log: dict[str, dict[str, str]]) -> list[Predicted]:
    """Returns the rows whose model is today what it was when it was measured; prints how many are left out."""
    parameters = {file: int(line["parameters"]) for file, line in log.items() if line["parameters"]}
    judged = [row for row in predicted if not has_changed(row, parameters)]
    print(f"{len(predicted)} rows predicted, {len(predicted) - len(judged)} of them of models that changed since: left out")
    return judged


def report(judged: list[Predicted], single_rows: bool) -> None:
    """Prints aggregates of the score part by set, format and GPU, then by family; of the fit part too, and its rows if asked."""
    head = (
        f"{'group':44} {'rows':>5} {'median':>7} {'mean':>7} {'90 %':>7} {'largest':>8} {'bias':>8} {'inside':>7} {'rank':>6}"
    )
    for part in ("score", "fit"):
        rows = [row for row in judged if is_fit(row.row) == (part == "fit")]
        for title, key in (
            ("set", lambda row: f"{row.row['set']} {row.row['memory_format']} {row.recipe.precision} {row.row['gpu']}"),
            ("family", lambda row: row.row["family"]),
        ):
            groups: dict[str, list[Predicted]] = {}
            for row in rows:
                groups.setdefault(key(row), []).append(row)
            print(f"\n{part} rows by {title}\n{head}")
            for name, group in sorted(groups.items()):
                # a group of one or two score rows would show single rows
                if part == "fit" or len(group) > 2:
                    print(_line(name, group))
    if single_rows:
        print("\nrows of the fit part")
        for row in sorted((row for row in judged if is_fit(row.row)), key=lambda row: row.error):
            print(
                f"{row.recipe.file:80} {row.row['gpu']:12} {row.row['batch_per_gpu']:>4} {row.measured:12.5g} {row.predicted:12.5g} {row.error:+8.1%}"
            )
