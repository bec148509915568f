from __future__ import annotations

import contextlib
import errno
import io
import sys
import tempfile
import time
import types
import unittest
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import support  # first: it puts the programs under test on the import path

import worker
from errors import CannotRun, OutOfTime
from exits import CANNOT_WRITE, DEVICE_LOST, NO_GPU, OK
from journal import Journal
from plan import Configuration

RESNET, A3C = Configuration("resnet50", 32, "fp32", "eager"), Configuration("a3c", 32, "fp32", "eager")
Measure = Callable[[Configuration], Mapping[str, Any]]


class WithFolder(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.out = Path(directory.name)
        self.journal = Journal(self.out / "journal.jsonl")
        self.said = io.StringIO()
        redirection = contextlib.redirect_stderr(self.said)
        redirection.__enter__()
        self.addCleanup(redirection.__exit__, None, None, None)


class Running(WithFolder):
    def setUp(self) -> None:
        super().setUp()
        self.measured: list[Configuration] = []

    def ok(self, configuration: Configuration) -> Mapping[str, Any]:
        self.measured.append(configuration)
        return support.measured()

    def run_worker(self, measure: Measure, answers: bool = True, seconds: float = 600, **changes: float) -> int:
        whole = worker.Worker(self.out, support.ENVIRONMENT, measure, lambda: answers, time.time() + seconds, **changes)
        return whole.run([RESNET, A3C])

    def statuses(self) -> dict[str, str]:
        return {key: entry["status"] for key, entry in self.journal.latest("h200").items()}

    def test_writes_journal_and_tables(self) -> None:
        self.assertEqual(self.run_worker(self.ok), OK)
        self.assertEqual(self.statuses(), {RESNET.key: "ok", A3C.key: "ok"})
        text = (self.out / "h200_pytorch.csv").read_text()
        self.assertIn("resnet50", text)
        self.assertIn("a3c", text)
        self.assertIn("2 ok; rows in", self.said.getvalue())

    def test_resumes_with_what_is_not_in_the_journal(self) -> None:
        self.run_worker(self.ok)
        self.measured.clear()
        self.assertEqual(self.run_worker(self.ok), OK)
        self.assertEqual(self.measured, [])
        self.assertIn("ok already", self.said.getvalue())

    def test_a_run_that_was_killed_is_measured_again(self) -> None:
        self.journal.append({"key": RESNET.key, "status": "started", "gpu": "h200"})
        self.run_worker(self.ok)
        self.assertEqual(self.measured, [RESNET, A3C])

    def test_another_gpu_is_measured_on_its_own(self) -> None:
        self.journal.append(support.entry() | {"gpu": "titanxp"})
        self.run_worker(self.ok)
        self.assertEqual(self.measured, [RESNET, A3C])

    def test_one_that_cannot_run_is_skipped_with_its_reason(self) -> None:
        def measure(configuration: Configuration) -> Mapping[str, Any]:
            if configuration == RESNET:
                raise CannotRun("too little GPU memory: tried to allocate 2 GiB")
            return self.ok(configuration)

        self.assertEqual(self.run_worker(measure), OK)
        self.assertEqual(self.statuses(), {RESNET.key: "skipped", A3C.key: "ok"})
        self.assertIn("skipped: too little GPU memory: tried to allocate 2 GiB", self.said.getvalue())

    def test_one_that_fails_does_not_stop_the_others(self) -> None:
        def measure(configuration: Configuration) -> Mapping[str, Any]:
            if configuration == RESNET:
                raise RuntimeError("cuDNN error")
            return self.ok(configuration)

        self.assertEqual(self.run_worker(measure), OK)
        self.assertEqual(self.statuses(), {RESNET.key: "failed", A3C.key: "ok"})

    def test_a_lost_device_asks_for_a_new_process(self) -> None:
        def measure(_configuration: Configuration) -> Mapping[str, Any]:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

        self.assertEqual(self.run_worker(measure, answers=False), DEVICE_LOST)
        self.assertEqual(self.statuses(), {RESNET.key: "failed"})

    def test_failed_ones_are_tried_again_only_when_asked_and_once_a_call(self) -> None:
        def broken(configuration: Configuration) -> Mapping[str, Any]:
            self.measured.append(configuration)
            raise RuntimeError("out of luck")

        call = time.time()
        self.run_worker(broken)
        self.run_worker(broken)
        self.assertEqual(len(self.measured), 2)
        self.run_worker(broken, retry_before=call - 60)  # a worker restarted within the call that failed
        self.assertEqual(len(self.measured), 2)
        self.run_worker(self.ok, retry_before=call + 60)  # a later call
        self.assertEqual(self.statuses(), {RESNET.key: "ok", A3C.key: "ok"})

    def test_nothing_starts_that_would_not_end_in_time(self) -> None:
        self.assertEqual(self.run_worker(self.ok, seconds=6), OK)
        self.assertEqual(self.measured, [A3C])  # estimated at 5 s, ResNet-50 at 9 s
        self.assertIn("1 left, 1 ok", self.said.getvalue())
        self.assertIn("the same command goes on with what is left", self.said.getvalue())

    def test_one_that_turns_out_too_long_is_left_for_another_call(self) -> None:
        def measure(_configuration: Configuration) -> Mapping[str, Any]:
            raise OutOfTime("needs about 90 s more")

        self.assertEqual(self.run_worker(measure), OK)
        self.assertEqual(self.statuses(), {})


class Ending(WithFolder):
    arguments = ("1e12", RESNET.key)

    def test_without_pytorch(self) -> None:
        with mock.patch.dict(sys.modules, {"torch": None}):
            self.assertEqual(worker.main([str(self.out), *self.arguments]), NO_GPU)
        self.assertIn("nothing measured: PyTorch is not installed for this Python", self.said.getvalue())

    def test_without_a_gpu(self) -> None:
        torch = types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: False))
        with mock.patch.dict(sys.modules, {"torch": torch}):
            self.assertEqual(worker.main([str(self.out), *self.arguments]), NO_GPU)
        self.assertIn("nothing measured: PyTorch finds no NVIDIA GPU", self.said.getvalue())
        self.assertEqual(list(self.out.iterdir()), [])

    def test_a_full_disk_keeps_what_was_measured(self) -> None:
        self.journal.append(support.entry())
        ready = worker.Worker(self.out, support.ENVIRONMENT, lambda _: support.measured(), lambda: True, 1e12)
        full = OSError(errno.ENOSPC, "No space left on device")
        with (
            mock.patch.object(worker, "no_gpu_reason", return_value=None),
            mock.patch.object(worker, "_on_this_gpu", return_value=ready),
            mock.patch("journal.os.fsync", side_effect=full),
        ):
            self.assertEqual(worker.main([str(self.out), "1e12", A3C.key]), CANNOT_WRITE)
        self.assertIn("cannot write: No space left on device; what was measured before is kept", self.said.getvalue())
        self.assertEqual(self.journal.latest("h200")[RESNET.key]["status"], "ok")


if __name__ == "__main__":
    unittest.main()
