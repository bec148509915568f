#!/usr/bin/env python3
"""Computes the errors of runs that are in no table of this repository, in aggregates by group, and logs them:

    docs/unseen.py build/release/simulate/tbd-sim FILE... --changed "what changed since the last time"

FILE is a table of runs (docs/formats.md). Of its rows of split `score` only group, number, mean, median, bias and share
within the 80 % interval are printed and appended to docs/unseen_log.csv, from which docs/update.py writes the tables of
docs/accuracy.md; no single row is shown.
"""
import argparse
import csv
import datetime
import pathlib
import subprocess
import sys

import tables

LEAST_ROWS = 3  # of a group: fewer would show single rows


def groups_of(program, file):
    """Returns the score groups of the table with enough predicted rows, as rows of `validate --format csv`."""
    printed = subprocess.run([program, "validate", "--runs", file, "--format", "csv"], check=True, text=True, capture_output=True).stdout
    return [row for row in csv.DictReader(printed.splitlines()) if row["section"] == "score" and int(row["configurations"]) >= LEAST_ROWS]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--changed", required=True, help="what changed since they were computed last")
    options = parser.parse_args()
    if not options.changed.strip():
        parser.error("--changed is empty; expected what changed since these rows were computed last")
    today = datetime.date.today().isoformat()
    lines = []
    for file in options.files:
        for row in groups_of(options.program, file):
            lines.append({"date": today, "changed": options.changed, "table": pathlib.Path(file).stem,
                          "group": row["group"], "configurations": row["configurations"],
                          **{column: f"{float(row[column]):.4f}" for column in tables.UNSEEN_COLUMNS[5:]}})
    with open(tables.UNSEEN_LOG, "a", newline="", encoding="utf-8") as log:
        writer = csv.DictWriter(log, tables.UNSEEN_COLUMNS, lineterminator="\n")
        if log.tell() == 0:
            writer.writeheader()
        writer.writerows(lines)
    print("\n".join(tables.unseen()))


if __name__ == "__main__":
    sys.exit(main())
