"""Shares of errors and lines of sets, by hand."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import coverage_by_set  # noqa: E402
import fit_intervals  # noqa: E402


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


class Components(unittest.TestCase):
    def test_are_those_of_the_header(self):
        self.assertEqual(list(fit_intervals.written_components())[:2], ["kernels", "GPU"])


if __name__ == "__main__":
    unittest.main()
