"""Tests that the tools of docs/ see what they look for."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs"))
import check_links  # noqa: E402
import page_charts  # noqa: E402
import paper_tables  # noqa: E402
import update  # noqa: E402


class CheckLinks(unittest.TestCase):
    def complaints_about(self, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs" / "other.md").write_text("# A `b` c, d\n", encoding="utf-8")
            (root / "README.md").write_text(text, encoding="utf-8")
            return list(check_links.complaints(root))

    def test_finds_nothing_wrong(self):
        text = "# Here\n[a](docs/other.md) [b](docs/other.md#a-b-c-d) [c](#here) [d](https://example.com) `docs/` `docs/other.md`\n"
        self.assertEqual(self.complaints_about(text), [])

    def test_finds_a_missing_file(self):
        self.assertEqual(self.complaints_about("[a](docs/no.md)"), ["README.md: no file docs/no.md"])

    def test_finds_a_missing_heading(self):
        self.assertEqual(self.complaints_about("[a](docs/other.md#e)"), ["README.md: no heading docs/other.md#e"])

    def test_finds_a_missing_source(self):
        self.assertEqual(self.complaints_about("`graphs/x.h` and `y.cpp`"), ["README.md: no file graphs/x.h", "README.md: no file is called y.cpp"])

    def test_leaves_fences_alone(self):
        self.assertEqual(self.complaints_about("```\n[a](docs/no.md) `graphs/x.h`\n```\n"), [])


class PageCharts(unittest.TestCase):
    def test_reads_the_named_table(self):
        page = "| a | b |\n|---|---|\n| 1 | 2 |\n\n| c | d |\n|---|---|\n| x | 3 ms |\n| y | 4 |\n\nwords\n"
        self.assertEqual(page_charts.table_of(page, "| c |"), [["x", "3 ms"], ["y", "4"]])

    def test_refuses_a_page_without_it(self):
        with self.assertRaises(ValueError):
            page_charts.table_of("| a |\n|---|\n| 1 |\n", "| c |")

    def test_draws_bars_as_long_as_times(self):
        drawn = page_charts.classes("| kernels | measured, ms | predicted / measured |\n|---|---|---|\n| copy | 300 | 0.50 |\n")
        self.assertIn('width="345.0" height="7" fill="#7a8aa0"', drawn)  # 460 pixels are 400 ms
        self.assertIn('width="172.5" height="7" fill="#c2410c"', drawn)


class PaperTables(unittest.TestCase):
    def test_one_kernel_has_its_share_and_several_their_range(self):
        found = {"a<x>": 2.345, "a<y>": 3.75, "b": 1.0}
        self.assertEqual(paper_tables.predicted_share(found, "b"), "1.00")
        self.assertEqual(paper_tables.predicted_share(found, "a<"), "2.3 to 3.8")
        self.assertEqual(paper_tables.predicted_share(found, None), "")


class Update(unittest.TestCase):
    @staticmethod
    def run_program(arguments):
        return "".join(f"{' '.join(arguments)} {i}\n" for i in range(5))

    def updated(self, text):
        return update.updated(text, self.run_program)

    def test_prints_all_lines(self):
        self.assertEqual(self.updated("```console\n$ tbd-sim list\nold\n```\n"),
                         "```console\n$ tbd-sim list\nlist 0\nlist 1\nlist 2\nlist 3\nlist 4\n```\n")

    def test_leaves_out_as_many_as_before(self):
        self.assertEqual(self.updated("```console\n$ ./quickstart.sh list\nold\n...\nold\n```\n"),
                         "```console\n$ ./quickstart.sh list\nlist 0\n...\nlist 4\n```\n")

    def test_two_blocks_do_not_run_together(self):
        text = "```console\n$ tbd-sim a\na 0\n...\n```\nwords\n```console\n$ tbd-sim b\nb 0\n...\n```\n"
        self.assertEqual(self.updated(text), text)

    def test_refuses_other_programs(self):
        with self.assertRaises(ValueError):
            self.updated("```console\n$ rm -r x\nold\n```\n")

    def test_copies_a_file(self):
        text = self.updated("<!-- docs/examples/my_framework.yaml -->\n```yaml\nold\n```\n")
        self.assertIn("based_on: pytorch", text)
        self.assertNotIn("old", text)

    def test_writes_a_table(self):
        text = self.updated("<!-- table score -->\nold\n<!-- end of table -->\n")
        self.assertIn("| `cnn_fp32_single` |", text)
        self.assertNotIn("old", text)


if __name__ == "__main__":
    unittest.main()
