"""Every cell of the notebook in docs runs, in order and in one process, and its last lines have values."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs/examples/first_steps.ipynb"


def run_cell(source, names):
    """Runs a cell; returns the value of its last line where that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)  # noqa: S102
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names) if last else None  # noqa: S307


def test_every_cell_runs():
    pytest.importorskip("pandas")
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    names = {}
    values = [run_cell("".join(cell["source"]), names) for cell in cells]
    assert len(values) > 4
    assert (values[0]["throughput"] > 0).all()
    best, largest = values[1]
    assert 1 <= best <= largest
    assert (values[-1]["efficiency"] <= 1.01).all()
    assert not any(cell["outputs"] for cell in cells), "cleared of outputs before it is committed"
