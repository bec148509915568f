"""llm.py: what it reads of the catalogue, which rows it may show, and sums of the operators' table."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path

import support  # first: it puts the programs under test on the import path

import llm

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared/reference"
PROGRAM = os.environ.get("TBDSIM_PROGRAM", "")


class Catalogue(unittest.TestCase):
    def test_finds_the_file_of_a_size(self):
        self.assertEqual(llm.file_of(ROOT, "llama3.2_3b"), "llama")
        self.assertEqual(llm.file_of(ROOT, "llama3.2_1b"), "llama")
        with self.assertRaises(SystemExit):
            llm.file_of(ROOT, "llama9_1b")

    def test_reads_the_parameters_of_a_size(self):
        parameters = llm.parameters_of(ROOT, "gpt2", "gpt2_large")
        self.assertEqual(parameters["width"], "1280")
        self.assertEqual(parameters["last_layer"], "35")
        self.assertEqual(llm.parameters_of(ROOT, "llama", "llama3.2_1b"), {})


class Operators(unittest.TestCase):
    def row(self, target, forward, shape="(1, 8)"):
        return {"model": "gpt2_large", "target": target, "fwd_ms": forward, "bwd_ms": "0", "output_shape": shape}

    def test_sums_the_first_layer_apart(self):
        rows = [
            self.row("transformer.wte", "1.0082"),
            self.row("<built-in function getitem>", "5"),
            self.row("transformer.h.0.ln_1", "2.0082"),
            self.row("<built-in method addmm of type object at 0x1>", "3.0082"),
            self.row("transformer.ln_f", "4.0082"),
        ]
        sums = llm.operator_sums(rows, {"fwd_ms": 0.0082, "bwd_ms": 0.0})
        self.assertAlmostEqual(sums["layer"][0], 5)
        self.assertAlmostEqual(sums["around"][0], 5)

    def test_takes_the_host_s_way_from_operators_on_a_few_numbers(self):
        rows = [self.row("transformer.wte", "0.024"), self.row("transformer.ln_f", "0.031"), self.row("transformer.h.0.mlp", "4", "(8, 80000)")]
        rows[0]["bwd_ms"] = "0.033"
        floors = llm.timer_floors(rows)
        self.assertAlmostEqual(floors["fwd_ms"], 0.024 - llm.KERNEL_MS)
        self.assertAlmostEqual(floors["bwd_ms"], 0.033 - llm.KERNEL_MS)


class Split(unittest.TestCase):
    def test_keeps_a_quarter_for_looking_at(self):
        share = sum(llm.is_fit(f"row-{i}") for i in range(1000)) / 1000
        self.assertAlmostEqual(share, 0.25, delta=0.05)

    def test_judged_groups_of_two_are_not_printed(self):
        def printed(fit, count):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                llm.report([llm.Judged("a group", f"row {i}", fit, 1.0, 1.1) for i in range(count)], rows=False)
            return said.getvalue()

        self.assertEqual(printed(False, 2), "")
        self.assertIn("3 rows, mean |error|  10.0 %", printed(False, 3))
        self.assertIn("1 rows", printed(True, 1))


class Measured(unittest.TestCase):
    """The bound is what the project asks of fp32 transformers in eager mode. Tables are not part of the repository."""

    @unittest.skipUnless(PROGRAM and SHARED.is_dir(), "needs tbd-sim and ../shared/reference")
    def test_eager_transformers_in_fp32(self):
        table = SHARED / "kernels/neusight_transformer_operators.csv"
        with tempfile.TemporaryDirectory() as folder:
            judged = llm.judge_operators(table, ROOT, Path(PROGRAM), Path(folder))
        totals = [abs(one.error) for one in judged if one.group.startswith("total") and "A100" in one.group]
        self.assertLess(sum(totals) / len(totals), 0.05)


if __name__ == "__main__":
    unittest.main()
