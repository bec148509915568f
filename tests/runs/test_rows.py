from __future__ import annotations

import csv
import tempfile
import unittest
from pathlib import Path

import support  # first: it puts the programs under test on the import path

from rows import COLUMNS, KERNEL_COLUMNS, kernel_rows, validation_rows, write_tables

SCHEMA = (
    "id,set,group,use,split,gpu,framework,version,precision,model,variant,batch_per_gpu,gpus,machines,network,method,"
    "metric,value,unit,note,why,source"
)
"""The header of the project's table of measured runs."""


class ValidationRows(unittest.TestCase):
    def rows(self, **changes: object) -> dict[tuple[str, str], dict[str, object]]:
        entry = support.entry(**{k: v for k, v in changes.items() if k in ("model", "batch", "precision", "mode")})
        entry.update({k: v for k, v in changes.items() if k not in entry or k in ("kernels", "memory", "loss_finite")})
        return {(row["metric"], row["unit"]): row for row in validation_rows(entry)}

    def test_columns_are_the_schema(self) -> None:
        self.assertEqual(",".join(COLUMNS), SCHEMA)
        for row in self.rows().values():
            self.assertEqual(list(row), COLUMNS)

    def test_throughput_is_samples_over_the_median(self) -> None:
        rows = self.rows()
        self.assertEqual(rows["throughput", "images/s"]["value"], "1600")  # 32 / 0.02 s
        self.assertEqual(rows["iteration_time", "s"]["value"], "0.02")
        note = rows["iteration_time", "s"]["note"]
        self.assertIn("median of 3 iterations, MAD 5 %", note)  # 0.001 / 0.02
        self.assertIn("SM 1980 MHz; memory 3201 MHz; 512 W; GPU busy 75 %", note)  # 0.015 / 0.02

    def test_units_of_each_model(self) -> None:
        # 64 pairs of 32 + 32 tokens, 8 utterances of 15 s, 32 environments of 4 frames, each in 0.02 s
        units = {
            ("transformer", 64): ("tokens/s (source and target)", "204800"),
            ("deep_speech2", 8): ("seconds of audio/s", "6000"),
            ("a3c", 32): ("frames/s", "6400"),
            ("wgan_gp", 64): ("images/s", "3200"),
            ("seq2seq", 128): ("sentences/s", "6400"),
        }
        for (model, batch), (unit, value) in units.items():
            with self.subTest(model):
                self.assertEqual(self.rows(model=model, batch=batch)["throughput", unit]["value"], value)

    def test_groups_follow_the_table(self) -> None:
        groups = {
            ("resnet50", "fp32"): "cnn_fp32_single",
            ("resnet50", "tf32"): "cnn_tf32_single",
            ("inception_v3", "bf16"): "cnn_mixed_single",
            ("seq2seq", "fp32"): "seq2seq_single",
            ("transformer", "bf16"): "transformer_single",
            ("faster_rcnn", "tf32"): "detection",
        }
        for (model, precision), group in groups.items():
            with self.subTest(model):
                self.assertEqual(self.rows(model=model, precision=precision)["iteration_time", "s"]["group"], group)

    def test_fair_targets_are_scored_and_shares_are_not(self) -> None:
        rows = self.rows()
        for row in rows.values():
            self.assertEqual(row["split"], "" if row["use"] == "context" else "score")
        self.assertEqual(rows["throughput", "images/s"]["use"], "time")
        self.assertEqual(rows["memory:feature_maps", "bytes"]["use"], "memory")
        busy = rows["gpu_compute_utilization", "%"]
        self.assertEqual((busy["use"], busy["value"]), ("context", "75"))
        self.assertTrue(busy["why"])

    def test_ids_are_stable_and_distinct(self) -> None:
        def ids(**changes: str) -> list[object]:
            return [row["id"] for row in self.rows(**changes).values()]

        self.assertEqual(ids(), ids())
        together = ids() + ids(precision="tf32") + ids(mode="cuda_graph")
        self.assertEqual(len(together), len(set(together)))

    def test_what_was_not_measured_has_no_row(self) -> None:
        memory = support.measured()["memory"] | {"feature_maps": None, "allocated_peak": None}
        rows = self.rows(kernels=None, memory=memory)
        self.assertNotIn(("gpu_time:forward", "s"), rows)
        self.assertNotIn(("gpu_compute_utilization", "%"), rows)
        self.assertNotIn(("memory:feature_maps", "bytes"), rows)
        self.assertNotIn(("memory_used", "bytes (allocator high water)"), rows)
        self.assertIn(("phase_time:forward", "s"), rows)

    def test_notes_say_what_a_reader_would_not_expect(self) -> None:
        mixed = self.rows(model="deep_speech2", precision="bf16", loss_finite=False)
        note = mixed["iteration_time", "s"]["note"]
        self.assertIn("autocast runs GRU in float16", note)
        self.assertIn("loss not finite", note)
        self.assertIn("CUDA graph", self.rows(mode="cuda_graph")["iteration_time", "s"]["variant"])

    def test_counters_give_context_rows_alone(self) -> None:
        entry = support.entry(mode="counters")
        entry["counters"] = {"kernels": 300, "fp32_flops": 7.8e11, "dram_bytes": 9.1e9, "kernel_seconds": 0.02}
        rows = validation_rows(entry)
        self.assertEqual([row["metric"] for row in rows], ["fp32_flops", "dram_bytes"])
        self.assertEqual({row["use"] for row in rows}, {"context"})


class Tables(unittest.TestCase):
    def test_kernel_rows(self) -> None:
        (row,) = kernel_rows(support.entry())
        self.assertEqual(list(row), KERNEL_COLUMNS)
        self.assertEqual((row["kernel"], row["calls_per_iteration"], row["mean_us"]), ("a,b", "2", "2.5"))
        self.assertEqual(kernel_rows(support.entry() | {"kernels": None}), [])

    def test_are_replaced_as_a_whole_and_leave_nothing_behind(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory)
            failed = {"status": "failed", "key": "x"}
            write_tables(out, "h200", [support.entry(), failed])
            write_tables(out, "h200", [support.entry(), support.entry(precision="tf32"), failed])
            self.assertEqual({p.name for p in out.iterdir()}, {"h200_pytorch.csv", "h200_pytorch_kernels.csv"})
            with (out / "h200_pytorch.csv").open(newline="") as file:
                rows = list(csv.DictReader(file))
            self.assertEqual({row["precision"] for row in rows}, {"fp32", "tf32"})
            with (out / "h200_pytorch_kernels.csv").open(newline="") as file:
                self.assertEqual([row["kernel"] for row in csv.DictReader(file)], ["a,b", "a,b"])


if __name__ == "__main__":
    unittest.main()
