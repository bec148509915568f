#!/usr/bin/env python3
"""Compares tests/validation/expected_errors.csv with that of the commit the work started from.

usage: against_base.py [BASE]

BASE is a commit; by default the merge base with origin's main branch or, where HEAD is that already, the newest commit
that is at least twelve hours older than HEAD. Prints every group whose mean error changed, and fails where a group of
`score` rows has an error more than a tenth larger than it had (and more than half a per cent), covers fewer rows or is
gone, unless accepted_growth.csv beside this file names section and group with the reason. The newest entry of
docs/unseen_log.csv, of rows that are not part of the repository, is held against the base's newest in the same way (section
`unseen`, group TABLE/GROUP). Exit code 77: there is no git history to compare with.
"""
import csv
import io
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
FILE = "tests/validation/expected_errors.csv"
UNSEEN = "docs/unseen_log.csv"
MOST_GROWTH = 1.1
LEAST_CHANGE = 0.005
SKIPPED = 77


def git(*arguments):
    """Returns what git prints, or None where it fails."""
    done = subprocess.run(["git", "-C", str(HERE), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def base_commit():
    """Returns the commit to compare with, or None."""
    head = git("rev-parse", "HEAD")
    base = git("merge-base", "HEAD", "origin/HEAD")
    if base and base != head:
        return base
    time = git("show", "-s", "--format=%ct", "HEAD")
    return git("rev-list", "-1", f"--before={int(time) - 12 * 3600}", "HEAD") if time else None


def groups(text):
    """Returns the rows of a table of errors by (section, group)."""
    return {(row["section"], row["group"]): row for row in csv.DictReader(io.StringIO(text))}


def unseen_groups(text):
    """Returns the newest entry of a log of unseen rows as groups() does; nothing where there is no log."""
    rows = list(csv.DictReader(io.StringIO(text or "")))
    newest = [row for row in rows if (row["date"], row["changed"]) == (rows[-1]["date"], rows[-1]["changed"])]
    return {("unseen", f"{row['table']}/{row['group']}"): {**row, "covered_rows": row["configurations"]} for row in newest}


def complaints(before, now, accepted):
    """Returns, in words, which groups of score rows became worse and are not accepted."""
    found = []
    for key, old in before.items():
        if key[0] not in ("score", "unseen") or key in accepted:
            continue
        name = " ".join(key)
        new = now.get(key)
        if new is None:
            found.append(f"{name} is gone")
        elif int(float(new["covered_rows"])) < int(float(old["covered_rows"])):
            found.append(f"{name} covers {new['covered_rows']} rows, before {old['covered_rows']}")
        elif float(new["mean"] or 0) > max(MOST_GROWTH * float(old["mean"] or 0), float(old["mean"] or 0) + LEAST_CHANGE):
            found.append(f"{name} has a mean error of {new['mean']}, before {old['mean']}")
    return found


def check_the_check():
    """Raises where complaints() does not see what it is for."""
    row = lambda covered, mean: {"covered_rows": covered, "mean": mean}
    before = {("score", "cnn"): row("10", "0.10"), ("score", "rnn"): row("5", "0.20"), ("fit", "x"): row("1", "0.1")}
    assert not complaints(before, {**before, ("score", "cnn"): row("10", "0.1099")}, {})
    assert complaints(before, {**before, ("score", "cnn"): row("10", "0.1101")}, {})
    assert not complaints(before, {**before, ("score", "cnn"): row("10", "0.1101")}, {("score", "cnn")})
    assert complaints(before, {**before, ("score", "cnn"): row("9", "0.05")}, {})
    assert complaints(before, {("score", "rnn"): row("5", "0.20")}, {})
    log = "date,changed,table,group,configurations,mean\n1,a,t,g,5,0.1\n2,b,t,g,5,0.2\n"
    assert unseen_groups(log) == unseen_groups(log[: log.index("1,a")] + log[log.index("2,b"):])
    assert complaints(unseen_groups(log[: log.index("2,b")]), unseen_groups(log), {})
    assert not unseen_groups(None)


def main():
    check_the_check()
    base = sys.argv[1] if len(sys.argv) > 1 else base_commit()
    text = git("show", f"{base}:{FILE}") if base else None
    if text is None:
        print("no earlier commit to compare with")
        return SKIPPED
    before = {**groups(text), **unseen_groups(git("show", f"{base}:{UNSEEN}"))}
    now = {**groups((HERE / "expected_errors.csv").read_text()), **unseen_groups((HERE.parent.parent / UNSEEN).read_text())}
    with open(HERE / "accepted_growth.csv", newline="") as file:
        accepted = {(row["section"], row["group"]): row["reason"] for row in csv.DictReader(file)}
    changed = [key for key in now if key in before and now[key]["mean"] != before[key]["mean"]]
    print(f"mean errors against {base[:12]}: {len(changed)} of {len(now)} groups changed")
    for key in changed:
        print(f"  {' '.join(key):40} {float(before[key]['mean'] or 0):8.4f} -> {float(now[key]['mean'] or 0):8.4f}  {accepted.get(key, '')}")
    found = complaints(before, now, accepted)
    for complaint in found:
        print("worse:", complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
