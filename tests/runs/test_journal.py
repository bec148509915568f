from __future__ import annotations

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import support  # first: it puts the programs under test on the import path

from journal import Journal


class Log(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.journal = Journal(Path(directory.name) / "journal.jsonl")

    def add(self, key: str, status: str, gpu: str = "h200") -> dict[str, str]:
        entry = {"key": key, "status": status, "gpu": gpu}
        self.journal.append(entry)
        return entry

    def test_is_empty_before_the_first_run(self) -> None:
        self.assertEqual(self.journal.entries(), [])
        self.assertIsNone(self.journal.unfinished(0))

    def test_a_line_that_a_kill_cut_short_costs_that_line_alone(self) -> None:
        first = self.add("a", "ok")
        with self.journal.path.open("ab") as file:
            file.write(b'{"key": "b", "sta')
        second = self.add("c", "ok")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(self.journal.entries(), [first, second])
        self.assertIn("journal.jsonl:2: not a whole line, left out", said.getvalue())

    def test_latest_is_the_last_word_on_each_configuration_of_one_gpu(self) -> None:
        self.add("a", "failed")
        self.add("a", "started")
        again = self.add("a", "ok")
        self.add("b", "started")
        self.add("a", "skipped", gpu="titanxp")
        self.assertEqual(self.journal.latest("h200"), {"a": again})

    def test_unfinished_is_what_was_started_last_in_this_call(self) -> None:
        self.add("a", "started")
        self.assertIsNone(self.journal.unfinished(1))
        started = self.add("b", "started")
        self.assertEqual(self.journal.unfinished(1), started)
        self.add("b", "ok")
        self.assertIsNone(self.journal.unfinished(1))


if __name__ == "__main__":
    unittest.main()
