from __future__ import annotations

import unittest
from typing import Any

import support  # first: it puts the programs under test on the import path

from kernels import summarize


def phase(name: str, start: float, duration: float) -> dict[str, Any]:
    return {"cat": "user_annotation", "name": f"phase:{name}", "ts": start, "dur": duration}


def launch(correlation: int, time: float) -> dict[str, Any]:
    arguments = {"correlation": correlation}
    return {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": time, "dur": 3.0, "args": arguments}


def ran(correlation: int, name: str, start: float, duration: float, kind: str = "kernel") -> dict[str, Any]:
    return {"cat": kind, "name": name, "ts": start, "dur": duration, "args": {"correlation": correlation}}


class Summary(unittest.TestCase):
    def test_counts_times_and_shares_per_iteration(self) -> None:
        # Two iterations. Kernels run long after their launch: the launch decides the phase.
        events = [phase("forward", 0, 10), phase("backward", 20, 10), phase("forward", 100, 10)]
        events += [launch(1, 2), launch(2, 25), launch(3, 105), launch(4, 108)]
        events += [ran(1, "gemm", 50, 4), ran(2, "gemm", 60, 6), ran(3, "gemm", 120, 8), ran(4, "relu", 128, 2)]
        summary = summarize({"traceEvents": events}, iterations=2)
        rows = {(row.phase, row.name): row for row in summary.rows}
        forward = rows["forward", "gemm"]
        self.assertEqual((forward.calls, forward.mean_us, forward.share), (1.0, 6.0, 0.6))  # 12 of 20 us
        self.assertEqual(rows["backward", "gemm"].calls, 0.5)
        self.assertEqual([row.name for row in summary.rows], ["gemm", "gemm", "relu"])  # longest first
        self.assertAlmostEqual(summary.phase_seconds["forward"], 7e-6)  # (4 + 8 + 2) / 2
        self.assertAlmostEqual(summary.phase_seconds["backward"], 3e-6)
        self.assertAlmostEqual(summary.busy_seconds, 10e-6)

    def test_overlapping_kernels_are_busy_once(self) -> None:
        events = [ran(1, "a", 0, 10), ran(2, "b", 2, 3), ran(3, "c", 8, 6), ran(4, "d", 20, 1)]
        self.assertAlmostEqual(summarize({"traceEvents": events}, 1).busy_seconds, 15e-6)  # 0..14 and 20..21

    def test_a_phase_counts_overlapping_kernels_once(self) -> None:
        # Two layers of a stack, 30..40 and 35..44, then a kernel of the other phase.
        events = [phase("forward", 0, 10), phase("backward", 20, 10), launch(1, 1), launch(2, 2), launch(3, 25)]
        events += [ran(1, "layer0", 30, 10), ran(2, "layer1", 35, 9), ran(3, "c", 50, 1)]
        summary = summarize({"traceEvents": events}, 1)
        self.assertAlmostEqual(summary.phase_seconds["forward"], 14e-6)
        self.assertAlmostEqual(summary.phase_seconds["backward"], 1e-6)

    def test_copies_are_listed_but_are_no_computation(self) -> None:
        events = [
            ran(1, "k", 0, 10),
            ran(2, "Memcpy HtoD", 10, 30, "gpu_memcpy"),
            ran(3, "Memset", 40, 10, "gpu_memset"),
        ]
        summary = summarize({"traceEvents": events}, 1)
        self.assertEqual(
            {row.name: row.kind for row in summary.rows}, {"k": "kernel", "Memcpy HtoD": "copy", "Memset": "set"}
        )
        self.assertAlmostEqual(summary.busy_seconds, 10e-6)
        self.assertEqual([row.share for row in summary.rows], [0.6, 0.2, 0.2])

    def test_a_replayed_graph_has_no_phases(self) -> None:
        events = [phase("forward", 0, 1), launch(7, 5), ran(7, "a", 6, 1), ran(7, "b", 7, 1)]
        summary = summarize({"traceEvents": events}, 1)
        self.assertEqual(summary.phase_seconds, {})
        self.assertEqual([row.phase for row in summary.rows], ["", ""])

    def test_an_empty_trace_has_no_rows(self) -> None:
        self.assertEqual(list(summarize({"traceEvents": [phase("forward", 0, 1), {"ph": "M"}]}, 1).rows), [])


if __name__ == "__main__":
    unittest.main()
