#!/usr/bin/env python3
"""Brings everything that README.md and docs/ quote up to date:

    docs/update.py build/release/simulate/tbd-sim            # writes
    docs/update.py build/release/simulate/tbd-sim --check    # names what is out of date; exit status 1

* ```console blocks: `$ command` and what it prints; a line `...` stands for lines that are left out
* a fenced block below `<!-- docs/examples/FILE -->`: that file
* `<!-- table NAME -->` to `<!-- end of table -->`: a table of docs/tables.py or docs/paper_tables.py
* docs/command_line.md: the help of every command
* docs/pictures/errors.svg: the errors of groups of runs; h100_classes.svg, time_to_accuracy.svg: tables of docs/accuracy
"""
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import error_chart
import page_charts
import paper_tables
import tables

ROOT = tables.ROOT
EXAMPLES = ROOT / "docs" / "examples"
COMMAND_LINE = ROOT / "docs" / "command_line.md"


class Program:
    """tbd-sim, run in a folder that holds the reader's own files."""

    def __init__(self, path, folder):
        self.path, self.folder = str(pathlib.Path(path).resolve()), folder
        for file in EXAMPLES.glob("my_*.yaml"):
            shutil.copy(file, folder)
        for file in (ROOT / "tests" / "import" / "files").iterdir():
            shutil.copy(file, folder)
        shutil.copy(ROOT / "simulate" / "validation" / "runs" / "tbd_paper.csv", pathlib.Path(folder) / "runs.csv")

    def run(self, arguments):
        """What it prints, errors included."""
        return subprocess.run([self.path, *arguments], cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def arguments_of(command):
    """Of `tbd-sim ARGUMENTS` or `./quickstart.sh ARGUMENTS`, which runs tbd-sim."""
    name, *arguments = shlex.split(command, comments=True)
    if name not in ("tbd-sim", "./quickstart.sh"):
        raise ValueError(f"a console block runs tbd-sim, not {name}")
    return arguments


def shortened(shown, printed):
    """`printed` with as many lines left out as `shown` leaves out."""
    if "..." not in shown:
        return printed
    first = shown.index("...")
    last = len(shown) - first - 1
    return [*printed[:first], "...", *(printed[-last:] if last else [])]


def console(block, run):
    command, *shown = block.rstrip("\n").split("\n")
    printed = run(arguments_of(command.removeprefix("$ "))).rstrip("\n").split("\n")
    return "\n".join([command, *shortened(shown, [line.rstrip() for line in printed])]) + "\n"


def updated(text, run):
    """The page's text with everything it quotes as it is now."""
    text = re.sub(r"(?<=^```console\n)(\$ .*?)(?=^```$)", lambda m: console(m[1], run), text, flags=re.M | re.S)
    text = re.sub(r"(^<!-- (docs/examples/\S+) -->\n```\w+\n).*?(?=^```$)",
                  lambda m: m[1] + (ROOT / m[2]).read_text(encoding="utf-8"), text, flags=re.M | re.S)
    known = tables.all_tables(run) | paper_tables.all_tables(run)
    return re.sub(r"(^<!-- table (\w+) -->\n).*?(?=^<!-- end of table -->$)",
                  lambda m: m[1] + "\n" + "\n".join(known[m[2]]()) + "\n\n", text, flags=re.M | re.S)


def command_line(run):
    """A page of every command's help."""
    overview = run(["--help"]).strip()
    commands = re.findall(r"^  ([a-z-]+) ", overview.split("Subcommands:\n")[1].split("\n\n")[0], flags=re.M)
    lines = ["# Command line", "", "<!-- written by docs/update.py -->", "",
             "Exit codes: 0 success (also for \"does not fit\"), 2 a wrong command line or file, 1 a bug in tbd-sim, 130 interrupted.",
             "", "## tbd-sim", "", "```text", overview, "```", ""]
    for name in commands:
        lines += [f"## tbd-sim {name}", "", "```text", run([name, "--help"]).strip(), "```", ""]
    return "\n".join(lines)


def pages():
    return [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page != COMMAND_LINE)]


def main():
    check = sys.argv[2:] == ["--check"]
    if len(sys.argv) < 2 or sys.argv[1].startswith("-") or (len(sys.argv) > 2 and not check):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        run = Program(sys.argv[1], folder).run
        if not check and not tables.log_is_complete():
            tables.append_to_log()
        stale = [] if tables.log_is_complete() else [tables.LOG]
        new = {page: updated(page.read_text(encoding="utf-8"), run) for page in pages()}
        new |= {COMMAND_LINE: command_line(run), error_chart.PICTURE: error_chart.drawing()} | page_charts.drawings()
        for page, text in new.items():
            if page.exists() and page.read_text(encoding="utf-8") == text:
                continue
            stale.append(page)
            if not check:
                page.write_text(text, encoding="utf-8")
    for page in stale:
        print(f"{page.relative_to(ROOT)}: {'out of date; run docs/update.py ' + sys.argv[1] if check else 'written'}")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
