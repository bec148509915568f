#!/usr/bin/env python3
"""Fits the components of intervals (`kComponents` of simulate/prediction/uncertainty.h) to all rows of split `fit`.

    tests/validation/fit_intervals.py TBD_SIM TBD_CALIBRATE [--reference FOLDER] [--steps FOLDER]

Gathers the rows that may be looked at, of this repository's tables (as development rows), of the tables of runs and of
layouts in FOLDER (../shared/reference) and, if `--steps` names the captured models, of the vision table, and gives them to
`tbd-calibrate fit-intervals`, which prints the components. Then prints the factor of intervals of memory. Submissions of MLPerf
have spreads of their own (fit_spread.py).
"""
import argparse
import csv
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EIGHTY = 1.2816    # standard deviations
CORRELATION = 0.1  # of errors within a set (calibrate/framework_fit/interval_fit.h)

sys.path += [str(ROOT / "tests/cluster"), str(ROOT / "calibrate/runs")]
import judge_runs  # noqa: E402
import vision_errors  # noqa: E402
import vision_rows  # noqa: E402


def written_components() -> dict[str, float]:
    """`kComponents`, with which the program predicts, by the name of the effect."""
    text = (ROOT / "simulate/prediction/uncertainty.h").read_text(encoding="utf-8")
    names = re.findall('"([^"]*)"', re.search(r"kEffectNames = \{([^}]*)\}", text).group(1))
    return dict(zip(names, map(float, re.search(r"kComponents = \{([^}]*)\}", text).group(1).split(",")), strict=True))


def layout_errors(program: str, table: Path, output: Path) -> None:
    """Writes error and effects of the layouts of split fit; what an interval has beside set, rest and exchange is the kernels'."""
    components = written_components()
    if components["kernels"] <= 0:
        sys.exit(f"kComponents has {components['kernels']} for kernels; expected more than 0, by which effects of layouts are told")
    with table.open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["set"] in judge_runs.SETS and r["use"] == "time"
                and r["gpu"] in judge_runs.GPUS and judge_runs.is_fit(r)]
    found = judge_runs.predict(program, rows, [])
    with output.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["set", "gpu", "version", "model", "log_error", *(f"amount of {name}" for name in components)])
        for row in rows:
            p = found[row["id"]]
            if p["status"] != "ok":
                continue
            step = float(p["step_time"])
            waits = sum(float(p[k]) for k in ("tensor_time", "send_time", "replica_time")) / step
            width = math.log(float(p["tokens_per_second_high"]) / float(p["tokens_per_second_low"])) / 2 / EIGHTY
            others = components["set"]**2 + components["rest"]**2 + (components["exchange"] * waits)**2
            kernels = math.sqrt(max(0.0, width**2 - others)) / components["kernels"]
            amounts = {"kernels": kernels, "set": 1, "rest": 1, "exchange": waits}
            error = math.log(step / judge_runs.measured_seconds(row))
            writer.writerow([f"{row['set']} (layouts)", row["gpu"], row["framework"], "decoder", error,
                             *(amounts.get(name, 0) for name in components)])


def captured_runs(table: Path, steps: Path, output: Path) -> None:
    """Writes the fit rows of captured models whose step is in the folder as a table of runs."""
    columns = [*vision_errors._COLUMNS, "use", "split"]
    with output.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        of_fit = [row for row in vision_rows.read(table) if row["use"] == "score_time" and vision_rows.is_fit(row)]
        wanted = vision_rows.recipes(of_fit)
        print(vision_rows.steps_here(wanted, steps))
        for recipe, rows in wanted.items():
            if not (steps / recipe.file).exists():
                continue
            for row in rows:
                unit, factor = vision_errors._unit(row["unit"])
                writer.writerow({**row, "set": f"{row['set']} {row['memory_format']}", "use": "time", "split": "fit", "gpus": "1",
                                 "machines": "1", "model": str((steps / recipe.file).resolve()), "variant": "", "unit": unit,
                                 "precision": vision_errors.PRECISIONS[recipe.precision],
                                 "framework": vision_errors.framework_of(row, None), "value": repr(float(row["value"]) * factor)})


def holding(errors: list[tuple[str, float]], share: float = 0.8) -> float:
    """Returns the least size of an error that this share of (set, error) does not exceed; n errors of a set count n / (1 + 0.1 (n - 1))."""
    sizes = Counter(name for name, _ in errors)
    weighted = sorted((abs(error), 1 / (1 + CORRELATION * (sizes[name] - 1))) for name, error in errors)
    left = share * sum(weight for _, weight in weighted)
    for size, weight in weighted:
        left -= weight
        if left <= 1e-12:
            return size
    raise ValueError("no errors; expected one or more")


def memory_errors(program: str, tables: list[Path]) -> list[tuple[str, float]]:
    """(set, ln of predicted over measured memory) of the totals of development rows."""
    columns = ["set", "gpu", "framework", "version", "precision", "model", "variant", "batch_per_gpu", "gpus", "machines", "network",
               "method", "metric", "unit", "value"]
    with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as scenarios:
        writer = csv.DictWriter(scenarios, columns, restval="", extrasaction="ignore")
        writer.writeheader()
        for table in tables:
            with table.open(newline="") as file:
                writer.writerows(row for row in csv.DictReader(file)
                                 if row["use"] == "memory" and row["metric"] == "memory_used" and row["split"] in ("fit", "score"))
        scenarios.flush()
        done = subprocess.run([program, "predict", "--scenarios", scenarios.name], capture_output=True, text=True, check=True)
    return [(row["set"], math.log(float(row["predicted"]) / float(row["value"])))
            for row in csv.DictReader(done.stdout.splitlines()) if row["status"] == "ok"]


def factor_of_development(printed: str) -> float:
    """Returns by what deviations of development rows are multiplied, of what `fit-intervals` prints; ends the program without it."""
    found = re.search(r"development rows are ([0-9.]+) times", printed)
    if not found:
        sys.exit("fit-intervals did not print the factor of development rows, by which that of memory is divided")
    return float(found.group(1))


def there(table: Path) -> Path | None:
    """Returns a table, or None where it is not here, which is said."""
    if table.exists():
        return table
    print(f"{table}: not here; skipped")
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("calibrate")
    parser.add_argument("--reference", type=Path, default=ROOT / "../shared/reference")
    parser.add_argument("--steps", type=Path, help="folder of captured models (calibrate/runs/vision.py capture)")
    parser.add_argument("--rows", type=Path, help="write the errors to this file")
    options = parser.parse_args()
    if not options.reference.exists():
        print(f"{options.reference}: no measured runs here; nothing is fitted")
        return
    with tempfile.TemporaryDirectory() as folder:
        layouts, captured = Path(folder, "layouts.csv"), Path(folder, "captured.csv")
        errors = ["--errors", layouts] if (table := there(options.reference / "llm/runs.csv")) else []
        if table:
            layout_errors(options.program, table, layouts)
        tables = [table for name in ("runs_more", "later_models") if (table := there(options.reference / f"runs/{name}.csv"))]
        if options.steps and (table := there(options.reference / "vision/runs.csv")):
            captured_runs(table, options.steps, captured)
            tables.append(captured)
        development = sorted((ROOT / "simulate/validation/runs").glob("*.csv"))
        rows = ["--rows", options.rows] if options.rows else []
        command = [options.calibrate, "fit-intervals", *tables, "--development", *development, *errors, *rows]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        print(done.stdout)
        if done.returncode != 0:
            sys.exit(done.returncode)
    errors = memory_errors(options.program, development)
    size = holding(errors) / factor_of_development(done.stdout)
    print(f"memory: 80 % of {len(errors)} totals are within a factor of {math.exp(size):.3f}, as rows are that nobody looked at")


if __name__ == "__main__":
    main()
