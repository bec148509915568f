"""Step files: what is written is read again, and what does not follow the format is an error with its place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tbdsim
from tbdsim.step import Affine, DtypeArgument, Operator, Step, Storage, Tensor, TensorArgument


def example() -> Step:
    """One linear layer, forward and its cast."""
    return Step(
        name="linear",
        title="A linear layer",
        sample="sample",
        length=0,
        precision="fp16",
        channels_last=False,
        captured_with={"torch": "2.9.0", "batches": [2, 3, 5]},
        modules=[("", "Linear")],
        storages=[
            Storage("input", Affine(0, 16), -1, -1, ""),
            Storage("parameter", 64, -1, -1, "weight"),
            Storage("activation", 32, 0, 1, ""),
            Storage("activation", Affine(0, 8), 1, -1, ""),
        ],
        tensors=[
            Tensor(0, "f16", (Affine(0, 1), 4), (4, 1), 0),
            Tensor(1, "f32", (4, 4), (4, 1), 0),
            Tensor(2, "f16", (4, 4), (4, 1), 0),
            Tensor(3, "f16", (Affine(0, 1), 4), (4, 1), 0),
        ],
        operators=[
            Operator(
                "aten._to_copy.default",
                "forward",
                0,
                [TensorArgument(1), DtypeArgument("f16"), None, "cuda", False, float("-inf")],
                [2],
            ),
            Operator("aten.mm.default", "forward", 0, [TensorArgument(0), [TensorArgument(2), 1, True], Affine(3, 2)], [3, -1]),
        ],
        warnings=["a warning"],
    )


@pytest.mark.parametrize("name", ["a.step.json", "a.step.json.gz"])
def test_round_trip(tmp_path: Path, name: str) -> None:
    example().save(tmp_path / name)
    read = tbdsim.load(tmp_path / name)
    assert read.operators[0].arguments.pop() == "-inf"  # JSON has no infinity
    wanted = example()
    wanted.operators[0].arguments.pop()
    assert read == wanted
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_same_step_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.json.gz", "b.json.gz"):
        example().save(tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_what_is_written_is_strict_json(tmp_path: Path) -> None:
    example().save(tmp_path / "a.json")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document = json.loads((tmp_path / "a.json").read_text(), parse_constant=refuse)
    assert (document["format"], document["version"]) == ("tbdsim step", 1)
    assert document["operators"][1] == [
        "aten.mm.default",
        "forward",
        0,
        [{"t": 0}, [{"t": 2}, 1, True], {"n": [3, 2]}],
        [3, -1],
    ]
    assert document["storages"][0] == ["input", [0, 16], -1, -1, ""]


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    example().save(path)
    broken = example()
    broken.operators.append(Operator("x", "forward", 0, [object()], []))
    before = path.read_bytes()
    with pytest.raises(TypeError):
        broken.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def change(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.__setitem__(key, value)


def change_row(key: str, row: int, column: int, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document[key][row].__setitem__(column, value)


@pytest.mark.parametrize(
    "spoil, message",
    [
        (change("format", "step"), 'expected an object with "format": "tbdsim step"'),
        (change("version", 2), "version is 2: expected 1"),
        (change("titel", "x"), "a key is \"titel\": expected one of .*; did you mean 'title'?"),
        (lambda document: document.pop("tensors"), "key 'tensors' is missing"),
        (change("precision", "fp15"), "precision is \"fp15\": expected one of .*; did you mean 'fp1?6?'"),
        (change("length", -1), "length is -1: expected a whole number from 0"),
        (change("length", True), "length is true"),
        (change("channels_last", 0), "channels_last is 0: expected true or false"),
        (change_row("storages", 1, 0, "parameters"), r"storages\[1\], role is \"parameters\": .*; did you mean 'parameter'"),
        (change_row("storages", 2, 3, 2), r"storages\[2\], freed is 2: expected a whole number from -1 to 1"),
        (change_row("storages", 0, 1, [16, 0]), r"storages\[0\], bytes is \[16, 0\]: .* with b != 0"),
        (change_row("tensors", 0, 0, 4), r"tensors\[0\], storage is 4: expected a whole number from 0 to 3"),
        (change_row("tensors", 0, 1, "half"), r"tensors\[0\], dtype is \"half\""),
        (change_row("tensors", 0, 3, [1]), r"tensors\[0\], strides is \[1\]: expected 2 strides"),
        (change_row("operators", 1, 1, "forwards"), r"operators\[1\], phase is \"forwards\": .*; did you mean 'forward'"),
        (change_row("operators", 1, 2, 1), r"operators\[1\], module is 1"),
        (change_row("operators", 1, 3, [{"t": 9}]), r"operators\[1\], arguments.t is 9: expected a whole number from 0 to 3"),
        (change_row("operators", 1, 3, [{"x": 9}]), r"operators\[1\], arguments is .*: expected an object with"),
        (change_row("operators", 1, 4, [-2]), r"operators\[1\], outputs is -2"),
        (change("modules", [["a"]]), r"modules\[0\] is \[\"a\"\]: expected a list of 2 values"),
    ],
)
def test_errors_name_file_field_and_what_was_expected(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], None], message: str
) -> None:
    path = tmp_path / "a.json"
    example().save(path)
    document = json.loads(path.read_text())
    spoil(document)
    path.write_text(json.dumps(document))
    with pytest.raises(tbdsim.StepFileError, match=message) as error:
        tbdsim.load(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\x1f\x8b\x08\x00garbage", gzip.compress(b"[1]")[:-9], b"[" * 100_000, b"\xff\xfe"]
)
def test_what_is_no_json(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(data)
    with pytest.raises(tbdsim.StepFileError, match="neither JSON nor JSON compressed by gzip"):
        tbdsim.load(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(tbdsim.StepFileError, match="No such file"):
        tbdsim.load(tmp_path / "a.json")
