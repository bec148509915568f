from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import support  # first: it puts the programs under test on the import path

import train
from catalogue import MODELS
from exits import CANNOT_WRITE, DEVICE_LOST, NO_GPU, OK
from journal import Journal

FAKE_WORKER = (
    """
import json, os, sys
path, *deeds = sys.argv[1:]
lines = open(path).read().splitlines() if os.path.exists(path) else []
for deed in deeds[sum('"started"' in line for line in lines):]:
    entry = {"key": deed, "gpu": "h200", "status": "started"}
    with open(path, "a") as file:
        file.write(json.dumps(entry) + "\\n")
        if deed != "dies":
            file.write(json.dumps(entry | {"status": "failed" if deed == "loses" else "ok"}) + "\\n")
    if deed == "dies":
        os.abort()
    if deed == "loses":
        sys.exit(%d)
sys.exit(0)
"""
    % DEVICE_LOST
)


def run_program(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(support.RUNS / "train.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


class CommandLine(unittest.TestCase):
    def test_lists_every_model(self) -> None:
        said = run_program("--list")
        self.assertEqual(said.returncode, OK)
        for model in MODELS:
            self.assertIn(f"{model.name}: ", said.stdout)
            self.assertIn(f"{model.parameters:,} parameters", said.stdout)

    def test_dry_run_prints_the_plan_in_order_with_seconds(self) -> None:
        said = run_program("--dry-run", "--minutes", "1")
        self.assertEqual(said.returncode, OK)
        self.assertRegex(said.stdout, r"(?m)^ +1  resnet50/b32/fp32/eager +\d+ s +\d+ s$")
        self.assertIn("beyond the time box", said.stdout)

    def test_says_what_is_wrong(self) -> None:
        wrong = {
            ("--model", "resnet5"): "invalid choice: 'resnet5'",
            ("--model", "a3c", "--mode", "compile"): "a3c has no mode compile; it has eager",
            ("--batch", "0"): "0 is not a positive number",
            ("--minutes", "nan"): "nan is not a positive number",
            ("--precision", "fp64"): "invalid choice: 'fp64'",
            (): "-o OUT_DIR is needed",
        }
        for arguments, message in wrong.items():
            with self.subTest(arguments):
                said = run_program(*arguments)
                self.assertEqual(said.returncode, 2)
                self.assertIn(message, said.stderr)

    def test_a_folder_that_cannot_be_made(self) -> None:
        with tempfile.NamedTemporaryFile() as file:
            said = run_program("-o", f"{file.name}/out")
        self.assertEqual(said.returncode, CANNOT_WRITE)
        self.assertIn("cannot make this folder: Not a directory", said.stderr)

    def test_without_pytorch_both_ways_end_with_77(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            hidden = Path(directory) / "sitecustomize.py"
            hidden.write_text("import sys\nsys.modules['torch'] = None\n")
            bare = {"PYTHONPATH": directory}
            measuring = run_program("-o", f"{directory}/out", env=bare)
            rehearsing = run_program("--smoke", env=bare)
        self.assertEqual(measuring.returncode, NO_GPU)
        self.assertIn("nothing measured: PyTorch is not installed", measuring.stderr)
        self.assertEqual(rehearsing.returncode, NO_GPU)
        self.assertIn("skipped: PyTorch is not installed", rehearsing.stdout)


class Supervision(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name) / "journal.jsonl"
        self.journal = Journal(self.path)

    def supervise(self, *deeds: str, seconds: float = 60) -> int:
        command = [sys.executable, "-c", FAKE_WORKER, str(self.path), *deeds]
        with contextlib.redirect_stderr(io.StringIO()):
            return train.run(command, self.journal, time.time() + seconds)

    def ends(self) -> list[tuple[str, str]]:
        return [(e["key"], e["status"]) for e in self.journal.entries() if e["status"] != "started"]

    def test_a_configuration_that_kills_the_process_is_marked_and_the_rest_goes_on(self) -> None:
        self.assertEqual(self.supervise("runs", "dies", "ran"), OK)
        self.assertEqual(self.ends(), [("runs", "ok"), ("dies", "crashed"), ("ran", "ok")])

    def test_a_lost_device_gets_a_new_process(self) -> None:
        self.assertEqual(self.supervise("loses", "ran"), OK)
        self.assertEqual(self.ends(), [("loses", "failed"), ("ran", "ok")])

    def test_a_worker_that_cannot_even_start_ends_it(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code = train.run([sys.executable, "-c", "raise SystemExit(3)"], self.journal, time.time() + 60)
        self.assertEqual(code, 3)
        self.assertIn("the worker ended with code 3 before it started a run", said.getvalue())

    def test_what_the_end_of_the_time_box_cuts_short_is_left_for_another_call(self) -> None:
        slow = "import time; time.sleep(0.3); raise SystemExit(1)"
        self.journal.append({"key": "slow", "gpu": "h200", "status": "started"})
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code = train.run([sys.executable, "-c", slow], self.journal, time.time() + 0.2)
        self.assertEqual(code, OK)
        self.assertIn("stopped at the end of the time box", said.getvalue())
        self.assertEqual(self.ends(), [])

    def test_nothing_is_started_after_the_deadline(self) -> None:
        self.assertEqual(self.supervise("runs", seconds=-1), OK)
        self.assertEqual(self.ends(), [])


if __name__ == "__main__":
    unittest.main()
