"""Shares of errors and lines of sets, by hand."""
import contextlib
import io
import sys
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1] / "captured")]
import coverage_by_set  # noqa: E402
import fit_intervals  # noqa: E402
import judge_timm  # noqa: E402


class Holding(unittest.TestCase):
    def test_four_of_five(self):
        self.assertEqual(fit_intervals.holding([(name, size) for name, size in zip("abcde", (3, -1, 5, 2, -4), strict=True)]), 4)

    def test_six_of_a_set_count_as_four(self):
        """6 / (1 + 0.1 x 5) = 4 of 6 in all, so that 80 %, 4.8, are reached with the next."""
        self.assertEqual(fit_intervals.holding([("a", 0.1)] * 6 + [("b", 0.3), ("c", 0.2)]), 0.2)

    def test_no_errors(self):
        with self.assertRaisesRegex(ValueError, "expected one or more"):
            fit_intervals.holding([])


class Lines(unittest.TestCase):
    def test_small_sets_are_one_line(self):
        """16 + 3 + 15 of 53 rows are 64 %."""
        lines = coverage_by_set.lines_of([("x", "a", 20, 0.8), ("x", "b", 3, 1.0), ("x", "c", 30, 0.5)], 20, True)
        self.assertEqual(lines[2:5], ["| x | a | 20 | 80 % | yes |", "| x | c | 30 | 50 % | narrow |", "| x | 1 smaller set | 3 | 100 % |  |"])
        self.assertEqual(lines[-1], "1 of 2 sets of 20 rows and more hold 75% to 85%; 64% of 53 rows are inside")


    def test_rows_that_would_show_single_ones_are_in_no_line_and_no_total(self):
        """Two rows beside 50, of which 31 are inside: a total of 52 would tell them."""
        lines = coverage_by_set.lines_of([("x", "a", 20, 0.8), ("x", "b", 2, 0.5), ("y", "c", 30, 0.5)], 20, True)
        self.assertEqual(len([line for line in lines if line.startswith("| x")]), 1)
        self.assertIn("62% of 50 rows", lines[-1])

    def test_least_is_named_with_its_value(self):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            sys.argv = ["coverage_by_set.py", "program", "--least", "2"]
            coverage_by_set.main()
        self.assertIn("--least is 2; expected 3 or more", said.getvalue())


class Missing(unittest.TestCase):
    def test_factor_of_development_rows(self):
        self.assertEqual(fit_intervals.factor_of_development("deviations of development rows are 0.78 times those of others\n"), 0.78)
        with self.assertRaisesRegex(SystemExit, "did not print the factor"):
            fit_intervals.factor_of_development("885 configurations\n")

    def test_tables_are_named(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertIsNone(fit_intervals.there(Path("nowhere.csv")))
        self.assertEqual(said.getvalue(), "nowhere.csv: not here; skipped\n")

    def test_a_folder_without_steps(self):
        recipe = fit_intervals.vision_rows.FIXTURES[0]
        with self.assertRaisesRegex(SystemExit, "none of the 1 captured steps is here"):
            fit_intervals.vision_rows.steps_here([recipe], Path("nowhere"))
        captured = Path(__file__).resolve().parents[1] / "captured"
        self.assertRegex(fit_intervals.vision_rows.steps_here([recipe], captured), "1 of 1 captured steps are here")


class Families(unittest.TestCase):
    def test_score_families_of_two_are_not_printed(self):
        def rows(part, family, count):
            return [{"part": part, "family": family, "measured": 100 + i, "predicted": 100, "low": 90, "high": 110} for i in range(count)]

        lines = judge_timm.lines_of(rows("score", "a", 3) + rows("score", "b", 2) + rows("fit", "b", 1) + rows("fit", "a", 1))
        self.assertEqual([line.split("  ")[0].strip() for line in lines], ["score", "fit", "score a", "fit a", "fit b"])


class Components(unittest.TestCase):
    def test_are_those_of_the_header(self):
        self.assertEqual(list(fit_intervals.written_components())[:2], ["kernels", "GPU"])


if __name__ == "__main__":
    unittest.main()
