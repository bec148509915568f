"""Reads and writes step files (docs/step_file.md)."""

from __future__ import annotations

import difflib
import gzip
import json
import math
import os
import tempfile
import zlib
from pathlib import Path
from typing import Any

from .errors import StepFileError
from .step import Affine, DtypeArgument, Operator, Size, Step, Storage, Tensor, TensorArgument

FORMAT = "tbdsim step"
VERSION = 1
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "pure_fp16", "pure_bf16")
PHASES = ("forward", "backward", "update", "zero")
ROLES = ("parameter", "buffer", "gradient", "state", "input", "host", "activation", "gradient_map", "temporary")
DTYPES = ("f32", "f16", "bf16", "f64", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool", "c64", "c128")
_KEYS = (
    "format version name title sample length captured_with precision channels_last modules storages tensors operators warnings"
).split()


def _argument_to_json(value: Any) -> Any:
    if isinstance(value, TensorArgument):
        return {"t": value.index}
    if isinstance(value, Affine):
        return {"n": list(value)}
    if isinstance(value, DtypeArgument):
        return {"dtype": value.name}
    if isinstance(value, list):
        return [_argument_to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def to_json(step: Step) -> dict[str, Any]:
    """Returns the step as the values of a JSON document."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": step.name,
        "title": step.title,
        "sample": step.sample,
        "length": step.length,
        "captured_with": step.captured_with,
        "precision": step.precision,
        "channels_last": step.channels_last,
        "modules": step.modules,
        "storages": step.storages,
        "tensors": step.tensors,
        "operators": [
            [o.name, o.phase, o.module, [_argument_to_json(a) for a in o.arguments], o.outputs] for o in step.operators
        ],
        "warnings": step.warnings,
    }


def save(step: Step, path: Path) -> None:
    """Writes a step file, one entry a line; compressed where the name ends in `.gz`."""
    document = to_json(step)
    parts = []
    for key, value in document.items():
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
        if key in ("modules", "storages", "tensors", "operators") and value:
            text = "[\n" + ",\n".join(json.dumps(item, separators=(",", ":"), allow_nan=False) for item in value) + "]"
        parts.append(f'"{key}":{text}')
    data = ("{" + ",\n".join(parts) + "}\n").encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class _Reader:
    """Checks values where they are used; an error names the file and the field."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fail(self, field: str, value: Any, expected: str, among: tuple[str, ...] | list[str] = ()) -> StepFileError:
        close = difflib.get_close_matches(str(value), among, 1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        shown = json.dumps(value, default=str)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        return StepFileError(f"{self.path}: {field} is {shown}: expected {expected}{hint}")

    def whole(self, value: Any, field: str, low: int, high: int | None = None) -> int:
        if type(value) is not int or value < low or (high is not None and value >= high):
            raise self.fail(field, value, f"a whole number from {low}" + (f" to {high - 1}" if high is not None else ""))
        return value

    def text(self, value: Any, field: str) -> str:
        if not isinstance(value, str):
            raise self.fail(field, value, "text")
        return value

    def choice(self, value: Any, field: str, among: tuple[str, ...]) -> str:
        if value not in among:
            raise self.fail(field, value, f"one of {', '.join(among)}", among)
        return str(value)

    def row(self, value: Any, field: str, columns: int) -> list[Any]:
        if not isinstance(value, list) or len(value) != columns:
            raise self.fail(field, value, f"a list of {columns} values")
        return value

    def size(self, value: Any, field: str) -> Size:
        if type(value) is int:
            return value
        if isinstance(value, list) and len(value) == 2 and all(type(v) is int for v in value) and value[1] != 0:
            return Affine(*value)
        raise self.fail(field, value, "a whole number, or [a, b] for a + b x batch with b != 0")

    def sizes(self, value: Any, field: str) -> tuple[Size, ...]:
        if not isinstance(value, list):
            raise self.fail(field, value, "a list of sizes")
        return tuple(self.size(item, field) for item in value)

    def argument(self, value: Any, field: str, tensors: int) -> Any:
        if isinstance(value, list):
            return [self.argument(item, field, tensors) for item in value]
        if not isinstance(value, dict):
            return value
        if list(value) == ["t"]:
            return TensorArgument(self.whole(value["t"], f"{field}.t", 0, tensors))
        if list(value) == ["n"]:
            return self.size(value["n"], f"{field}.n")
        if list(value) == ["dtype"]:
            return DtypeArgument(self.choice(value["dtype"], f"{field}.dtype", DTYPES))
        raise self.fail(field, value, 'an object with "t", "n" or "dtype" alone')

    def rows(self, document: dict[str, Any], key: str) -> list[Any]:
        if not isinstance(document[key], list):
            raise self.fail(key, document[key], "a list")
        return document[key]

    def step(self, document: Any) -> Step:
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise StepFileError(f'{self.path}: expected an object with "format": "{FORMAT}"')
        if document.get("version") != VERSION:
            raise self.fail("version", document.get("version"), f"{VERSION}")
        for key in document:
            if key not in _KEYS:
                raise self.fail("a key", key, f"one of {', '.join(_KEYS)}", _KEYS)
        for key in _KEYS:
            if key not in document:
                raise StepFileError(f"{self.path}: key '{key}' is missing")
        modules = [self._module(row, f"modules[{i}]") for i, row in enumerate(self.rows(document, "modules"))]
        operators = self.rows(document, "operators")
        storages = [
            self._storage(row, f"storages[{i}]", len(operators)) for i, row in enumerate(self.rows(document, "storages"))
        ]
        tensors = [self._tensor(row, f"tensors[{i}]", len(storages)) for i, row in enumerate(self.rows(document, "tensors"))]
        if not isinstance(document["channels_last"], bool):
            raise self.fail("channels_last", document["channels_last"], "true or false")
        if not isinstance(document["captured_with"], dict):
            raise self.fail("captured_with", document["captured_with"], "an object")
        return Step(
            self.text(document["name"], "name"),
            self.text(document["title"], "title"),
            self.text(document["sample"], "sample"),
            self.whole(document["length"], "length", 0),
            self.choice(document["precision"], "precision", PRECISIONS),
            document["channels_last"],
            document["captured_with"],
            modules,
            storages,
            tensors,
            [self._operator(row, f"operators[{i}]", len(modules), len(tensors)) for i, row in enumerate(operators)],
            [self.text(value, f"warnings[{i}]") for i, value in enumerate(self.rows(document, "warnings"))],
        )

    def _module(self, value: Any, field: str) -> tuple[str, str]:
        path, kind = self.row(value, field, 2)
        return self.text(path, f"{field}, path"), self.text(kind, f"{field}, class")

    def _storage(self, value: Any, field: str, operators: int) -> Storage:
        role, size, made, freed, name = self.row(value, field, 5)
        return Storage(
            self.choice(role, f"{field}, role", ROLES),
            self.size(size, f"{field}, bytes"),
            self.whole(made, f"{field}, made", -1, operators),
            self.whole(freed, f"{field}, freed", -1, operators),
            self.text(name, f"{field}, name"),
        )

    def _tensor(self, value: Any, field: str, storages: int) -> Tensor:
        storage, dtype, shape, strides, offset = self.row(value, field, 5)
        tensor = Tensor(
            self.whole(storage, f"{field}, storage", 0, storages),
            self.choice(dtype, f"{field}, dtype", DTYPES),
            self.sizes(shape, f"{field}, shape"),
            self.sizes(strides, f"{field}, strides"),
            self.size(offset, f"{field}, offset"),
        )
        if len(tensor.shape) != len(tensor.strides):
            raise self.fail(f"{field}, strides", strides, f"{len(tensor.shape)} strides")
        return tensor

    def _operator(self, value: Any, field: str, modules: int, tensors: int) -> Operator:
        name, phase, module, arguments, outputs = self.row(value, field, 5)
        if not isinstance(arguments, list) or not isinstance(outputs, list):
            raise self.fail(field, value, "arguments and outputs as lists")
        return Operator(
            self.text(name, f"{field}, name"),
            self.choice(phase, f"{field}, phase", PHASES),
            self.whole(module, f"{field}, module", 0, modules),
            [self.argument(argument, f"{field}, arguments", tensors) for argument in arguments],
            [self.whole(output, f"{field}, outputs", -1, tensors) for output in outputs],
        )


def load(path: str | Path) -> Step:
    """Reads a step file; `StepFileError` where it does not follow the format."""
    path = Path(path)
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        document = json.loads(data)
    except OSError as error:
        raise StepFileError(f"{path}: {error.strerror or error}") from error
    except (EOFError, zlib.error, ValueError, RecursionError) as error:
        raise StepFileError(f"{path}: neither JSON nor JSON compressed by gzip: {error}") from error
    return _Reader(path).step(document)
