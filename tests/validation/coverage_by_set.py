#!/usr/bin/env python3
"""Prints for each set of measured runs which share of them lies within the 80 % interval of its prediction.

    tests/validation/coverage_by_set.py PROGRAM [--reference FOLDER] [--steps FOLDER] [--least ROWS] [--markdown]

Rows of split `score` alone, as shares of whole sets of `--least` rows (20) or more: the tables of this repository, and of FOLDER
(../shared/reference) `runs`, submissions of `tta`, layouts of `llm`, and, if `--steps` names the captured models, `vision`.
Collections that are not here are named and skipped.
"""
import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

import judge_tta

ROOT = Path(__file__).resolve().parents[2]
AIM = (0.75, 0.85)
LEAST = 20
FEWEST = 3  # rows of which a share is printed; of fewer it would show single ones

sys.path += [str(ROOT / "tests/cluster"), str(ROOT / "calibrate/runs")]
import judge_runs  # noqa: E402
import vision_errors  # noqa: E402
import vision_rows  # noqa: E402


def of_runs(program: str, table: Path | None) -> list[tuple]:
    """(set, configurations, share inside) of a table of runs; of the repository's own for None."""
    words = ["--runs", str(table)] if table else []
    command = [program, "-q", "validate", "--by", "set", "--format", "csv", *words]
    done = subprocess.run(command, check=True, text=True, capture_output=True)
    rows = [row for row in csv.DictReader(done.stdout.splitlines()) if row["section"] == "score" and row["coverage"]]
    return [(row["set"], int(row["configurations"]), float(row["coverage"])) for row in rows]


def of_submissions(program: str, folder: Path) -> list[tuple]:
    rows = [row for row in judge_tta.submissions(folder) if row["split"] == "score"]
    groups = json.loads(judge_tta.validated(program, rows, "json"))["groups"]
    return [(group["benchmark"], group["covered"], group["rate_inside"]) for group in groups if group.get("rate_inside") is not None]


def of_layouts(program: str, table: Path) -> list[tuple]:
    with table.open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["set"] in judge_runs.SETS and r["use"] == "time"
                and r["gpu"] in judge_runs.GPUS and not judge_runs.is_fit(r)]
    found = judge_runs.predict(program, rows, [])
    inside: dict[str, list[bool]] = {}
    for row in rows:
        if found[row["id"]]["status"] == "ok":
            inside.setdefault(row["set"], []).append(judge_runs.is_inside(row, found[row["id"]]))
    return [(name, len(rows), sum(rows) / len(rows)) for name, rows in inside.items()]


def of_captured(program: str, table: Path, steps: Path) -> list[tuple]:
    rows = [row for row in vision_rows.read(table) if row["use"] == "score_time" and not vision_rows.is_fit(row)]
    print(vision_rows.steps_here(vision_rows.recipes(rows), steps))
    groups: dict[str, list[bool]] = {}
    for each in vision_errors.predict(vision_rows.recipes(rows), steps, Path(program)):
        precision = "half precision" if "fp16" in each.recipe.precision else each.recipe.precision
        groups.setdefault(f"{each.row['set']}, {each.row['memory_format']}, {precision}", []).append(each.inside)
    return [(name, len(rows), sum(rows) / len(rows)) for name, rows in groups.items()]


def collections(program: str, reference: Path, steps: Path | None) -> list[tuple]:
    """(collection, set, rows, share inside)."""
    sources = [
        ("development", ROOT / "simulate/validation/runs", lambda _: of_runs(program, None)),
        ("runs_more", reference / "runs/runs_more.csv", lambda path: of_runs(program, path)),
        ("later_models", reference / "runs/later_models.csv", lambda path: of_runs(program, path)),
        ("MLPerf, rates", reference / "tta", lambda path: of_submissions(program, path)),
        ("clusters", reference / "llm/runs.csv", lambda path: of_layouts(program, path)),
    ]
    if steps:
        sources.append(("captured", reference / "vision/runs.csv", lambda path: of_captured(program, path, steps)))
    found = []
    for name, path, shares in sources:
        if path.exists():
            found += [(name, *row) for row in shares(path)]
        else:
            print(f"{path}: not here; skipped")
    return found


def verdict(share: float) -> str:
    return "narrow" if share < AIM[0] else "wide" if share > AIM[1] else "yes"


def lines_of(found: list[tuple], least: int, markdown: bool) -> list[str]:
    """Lines of the sets with enough rows, and of the others of a collection as one. Rows that would have a line of fewer than three
    are in no line and no total."""
    row = "| {} | {} | {} | {:.0f} % | {} |" if markdown else "{:16} {:44} {:5} {:6.0f} %  {}"
    lines = ["| collection | set | rows | inside | within the aim |", "|---|---|---|---|---|"] if markdown else []
    shown = [each for each in found if each[2] >= least]
    counted = list(shown)
    for name in dict.fromkeys(each[0] for each in found):
        lines += [row.format(*each[:3], 100 * each[3], verdict(each[3])) for each in shown if each[0] == name]
        rest = [each for each in found if each[0] == name and each[2] < least]
        if sum(each[2] for each in rest) >= FEWEST:
            counted += rest
            count, share = share_of(rest)
            lines.append(row.format(name, "1 smaller set" if len(rest) == 1 else f"{len(rest)} smaller sets", count, 100 * share, ""))
    good = sum(verdict(each[3]) == "yes" for each in shown)
    count, total = share_of(counted)
    sets = f"{good} of {len(shown)} sets of {least} rows and more hold {AIM[0]:.0%} to {AIM[1]:.0%}"
    return [*lines, "", f"{sets}; {total:.0%} of {count} rows are inside"]


def share_of(sets: list[tuple]) -> tuple[int, float]:
    """(rows, share inside) of sets."""
    count = sum(each[2] for each in sets)
    return count, sum(each[2] * each[3] for each in sets) / count if count else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--reference", type=Path, default=ROOT / "../shared/reference")
    parser.add_argument("--steps", type=Path, help="folder of captured models (calibrate/runs/vision.py capture)")
    parser.add_argument("--least", type=int, default=LEAST, help="rows of a set that is shown by itself")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if options.least < FEWEST:
        parser.error(f"--least is {options.least}; expected {FEWEST} or more: a set of fewer would show single rows")
    print("\n".join(lines_of(collections(options.program, options.reference, options.steps), options.least, options.markdown)))


if __name__ == "__main__":
    main()
