"""The vision tables: which step a row trains, which part it is of, and sums of errors. Needs no PyTorch."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import tempfile
import unittest
from pathlib import Path

import support  # first: it puts the programs under test on the import path

import vision_capture
from vision_errors import Predicted, framework_of, gpus_of, has_changed, rank_correlation, report
from vision_memory import report_totals, slope_errors
from vision_rows import FIXTURES, Recipe, is_fit, recipe, recipes, wrong_release

ROW = {
    "id": "1",
    "set": "timm_train_pt112",
    "family": "timm:resnet",
    "arch_key": "resnet50",
    "model": "swsl_resnet50",
    "model_now": "resnet50",
    "gpu": "rtx3090",
    "precision": "amp",
    "memory_format": "nhwc",
    "batch_per_gpu": "64",
    "image_size": "224",
    "metric": "throughput",
    "params_millions": "25.56",
}
STEP = Recipe("timm", "resnet50", 224, "fp16", "nhwc", "timm_benchmark")
CAPTURED = Path(__file__).resolve().parents[1] / "captured"


def predicted(measured: float, value: float, **changes: str) -> Predicted:
    return Predicted(ROW | changes, STEP, measured, value, inside=value < 1.5 * measured)


class Rows(unittest.TestCase):
    def test_recipe_of_a_row(self) -> None:
        measured = Recipe("timm-0.6.7", "swsl_resnet50", 224, "fp16", "nhwc", "timm_benchmark")  # the names of that release
        self.assertEqual(recipe(ROW), measured)
        self.assertEqual(measured.file, "timm-0.6.7.swsl_resnet50.224.fp16.nhwc.timm_benchmark.step.json.gz")
        self.assertEqual(wrong_release(measured, "0.6.7"), "")
        self.assertIn("timm==0.6.7", wrong_release(measured, "1.0.31"))
        self.assertEqual(wrong_release(STEP, "1.0.31"), "")
        self.assertEqual(
            recipe(ROW | {"set": "gpumemnet_timm_memory"}), Recipe("timm", "resnet50", 224, "tf32", "nchw", "timm_train")
        )

    def test_torchvisions_images_were_on_the_gpu_in_2018(self) -> None:
        half = ROW | {"set": "torchvision_zoo_fwd_bwd", "precision": "fp16 (model.half())", "model": "resnet50"}
        copied = Recipe("torchvision", "resnet50", 224, "pure_fp16", "nchw", "forward_backward")
        self.assertEqual(recipe(half | {"unit": "ms (median of 50 steps)"}), copied)
        resident = recipe(half | {"unit": "ms (median of 20 steps)"})
        self.assertEqual(resident, dataclasses.replace(copied, step="resident_forward_backward"))

    def test_rows_without_a_recipe(self) -> None:
        gone = {"set": "gpumemnet_timm_memory", "model_now": ""}
        for changes in (gone, {"image_size": "1333x800"}, {"set": "mmdet_memory"}):
            self.assertIsNone(recipe(ROW | changes))

    def test_rows_of_the_same_step_are_together(self) -> None:
        grouped = recipes([ROW, ROW | {"id": "2", "batch_per_gpu": "32"}, ROW | {"id": "3", "memory_format": "nchw"}])
        self.assertEqual([len(rows) for rows in grouped.values()], [2, 1])

    def test_a_quarter_is_fit(self) -> None:
        fits = [is_fit(ROW | {"arch_key": f"model{i}"}) for i in range(400)]
        self.assertTrue(70 < sum(fits) < 130)

    def test_captured_steps_are_there(self) -> None:
        there = {path.name for path in CAPTURED.glob("*.step.json.gz") if not path.name.startswith("transformers.")}
        self.assertEqual({step.file for step in FIXTURES}, there)


class Scenarios(unittest.TestCase):
    def test_versions_differ_by_gpu(self) -> None:
        row = {"set": "torchvision_zoo_fwd_bwd", "gpu": "titanrtx"}
        self.assertEqual(framework_of(row, None), "pytorch_1_3")
        self.assertEqual(framework_of(row | {"gpu": "titanv"}, None), "pytorch_1_0")
        self.assertEqual(framework_of(row | {"gpu": "titanv"}, "pytorch"), "pytorch")

    def test_only_pycls_exchanges_gradients(self) -> None:
        self.assertEqual(gpus_of({"set": "pycls_timing", "gpus": "8"}), "8")
        self.assertEqual(gpus_of({"set": "torchvision_zoo_fwd_bwd", "gpus": "4"}), "1")


class Errors(unittest.TestCase):
    def test_above_zero_is_too_fast(self) -> None:
        self.assertAlmostEqual(predicted(100, 120).error, 0.2)
        self.assertAlmostEqual(predicted(100, 125, metric="iteration_time").error, -0.2)

    def test_changed_models(self) -> None:
        self.assertFalse(has_changed(predicted(1, 1), {STEP.file: 25_557_032}))
        self.assertTrue(has_changed(predicted(1, 1), {STEP.file: 26_557_032}))
        self.assertFalse(has_changed(predicted(1, 1), {}))

    def test_rank_correlation(self) -> None:
        self.assertEqual(rank_correlation([(1, 10), (2, 20), (3, 90)]), 1)
        self.assertEqual(rank_correlation([(1, 3), (2, 2), (3, 1)]), -1)

    def test_memory_of_a_sample(self) -> None:
        rows = [predicted(1000 + 50 * n, 3000 + 60 * n, metric="memory_used", batch_per_gpu=str(n)) for n in (8, 16, 32)]
        [error] = slope_errors([*rows, predicted(1, 1)])
        self.assertAlmostEqual(error, 0.2)

    def test_one_constant_is_added_to_all_memory(self) -> None:
        fit, score = (next(f"model{i}" for i in range(99) if is_fit({"arch_key": f"model{i}"}) == part) for part in (True, False))
        mib = 2.0**20
        rows = [
            predicted(1500 * mib, 1000 * mib, metric="memory_used", arch_key=fit),
            predicted(2000 * mib, 1600 * mib, metric="memory_used", arch_key=score),
        ]
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            report_totals(rows)
        self.assertIn("score: memory of 1 rows with +500 MiB added: median error 5.0%", output.getvalue())

    def test_single_score_rows_are_not_shown(self) -> None:
        score = next(f"model{i}" for i in range(9) if not is_fit({"arch_key": f"model{i}"}))
        two = [predicted(100, 110, arch_key=score, family="timm:one"), predicted(100, 90, arch_key=score, family="timm:one")]

        def reported(rows: list[Predicted]) -> str:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                report(rows, single_rows=True)
            self.assertNotIn("timm:one", output.getvalue())
            self.assertNotIn(STEP.file, output.getvalue())
            return output.getvalue()

        name = "timm_train_pt112 nhwc fp16 rtx3090"
        self.assertNotIn(name, reported(two))
        self.assertIn(name, reported([*two, predicted(100, 100, arch_key=score, family="timm:other")]))


class Log(unittest.TestCase):
    def test_what_is_there_is_not_captured_again(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            (folder / STEP.file).touch()
            failed = Recipe("timm", "none", 224, "fp16", "nchw", "timm_benchmark")
            header = ",".join(vision_capture.COLUMNS)
            vision_capture.log_path(folder).write_text(f"{header}\n{failed.file},0.1,,,,RuntimeError: no\n")
            vision_capture.capture_all([STEP, failed], folder, processes=1, retry=False)
            self.assertEqual(vision_capture.read_log(folder)[failed.file]["error"], "RuntimeError: no")


if __name__ == "__main__":
    unittest.main()
