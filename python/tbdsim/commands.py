"""The commands of tbd-sim as functions.

Wherever a model is named, a name of the catalogue (``tbdsim.list_of("models")``), a path to a YAML or step file, or a
captured Step will do; wherever a GPU, framework, machine or link is, a name or a path. Further keyword arguments are the
command's flags with ``_`` for ``-``: ``seq_len=384``, ``image_size=288``, ``dataset="imagenet"``,
``set=["gpu.memory_bandwidth=+50%"]``. Quantities are in SI units, shares from 0 to 1.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from .command_line import TbdSimError, options, run, run_json, run_program
from .step import Step
from .tables import Table

#: A name of the catalogue, a path to a YAML or step file, or a captured step.
Model: TypeAlias = str | Path | Step


@contextlib.contextmanager
def _named(model: Any) -> Iterator[str]:
    """The model's name or path; a Step is written to a file for as long as it is needed."""
    if not isinstance(model, Step):
        yield str(model)
        return
    with tempfile.TemporaryDirectory(prefix="tbdsim-") as folder:
        path = Path(folder) / f"{model.name}.step.json.gz"
        model.save(path)
        yield str(path)


@contextlib.contextmanager
def _all_named(models: Model | Sequence[Model] | None) -> Iterator[list[str]]:
    """The names or paths of one model, of several, or of none."""
    with contextlib.ExitStack() as files:
        each = [] if models is None else [models] if isinstance(models, (str, Path, Step)) else models
        yield [files.enter_context(_named(model)) for model in each]


def _each(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, (str, Path)) else [value]


def _table(document: dict[str, Any]) -> Table:
    """The first list of rows of a JSON document, and its totals."""
    name = next(key for key, value in document.items() if isinstance(value, list) and key != "totals")
    totals = document.get("totals")
    return Table(document[name], totals[0] if totals else None)


def _flat(prediction: dict[str, Any], units: dict[str, str]) -> dict[str, Any]:
    """One prediction of the program's JSON as a row; its units are added to ``units``."""
    metrics = prediction.pop("metrics")
    for group, prefix in (("memory", "memory_"), ("gpu_memory", "gpu_memory_")):
        metrics |= {prefix + name: value for name, value in prediction.pop(group, {}).items()}
    units.update({metric: value["unit"] for metric, value in metrics.items()})
    plain = {key: value for key, value in prediction.items() if not isinstance(value, (dict, list))}
    return {**plain, **{metric: value["value"] for metric, value in metrics.items()}}


def predict(model: Model | Sequence[Model] | None = None, *, gpu: str | Sequence[str], batch: int | Sequence[int],
            framework: str | None = None, precision: str | None = None, **flags: Any) -> Table:
    """One row for each GPU, batch and model: the scenario, ``fits``, ``bound`` and all metrics of ``tbd-sim list metrics``.

    ``throughput`` is in ``units["throughput"]`` a second, between ``throughput_low`` and ``throughput_high`` in 80 % of
    measurements; times are in s, memory (``memory_total``, ``memory_weights``, ..., ``gpu_memory_usable``) in bytes.
    ``framework``: "pytorch" for a model; without a model those of the TBD suite are predicted, in all frameworks that train them.
    ``precision``: a captured step's own unless it is given.
    Raises TbdSimError.
    """
    rows: list[dict[str, Any]] = []
    units: dict[str, str] = {}
    if framework is None and model is not None:
        framework = "pytorch"
    with _all_named(model) as names:
        for each_gpu, each_batch, name in itertools.product(_each(gpu), _each(batch), names or [None]):
            document = run_json(*options(model=name, gpu=each_gpu, batch=each_batch, framework=framework,
                                         precision=precision, **flags))
            rows += [_flat(prediction, units) for prediction in document["predictions"]]
    return Table(rows, units=units)


def predict_runs(scenarios: str | Path, **flags: Any) -> Table:
    """A row for each run of a table (CSV as docs/formats.md describes), with ``predicted``, ``predicted_low``, ``predicted_high``
    in the run's own unit and ``status``; numbers are text, as in the file."""
    return _table(run_json("predict", *options(scenarios=scenarios, **flags)))


def sweep(model: Model | Sequence[Model], *, framework: str | Sequence[str] | None = None, **axes: Any) -> Table:
    """A row for every combination of the axes: ``gpu=["t4", "l4"], batch="8:64:x2", set="gpu.tdp=..."``,
    with the columns ``metrics=[...]`` and ``status`` ("ok", "out of memory", or why there is no prediction).
    Without ``framework`` in "pytorch"; a sweep over jobs of clusters (``global_batch``) has none."""
    if framework is None and "global_batch" not in axes:
        framework = "pytorch"
    with _all_named(model) as names:
        lines = run("sweep", *options(model=names, framework=framework, **axes), "--format", "jsonl", "--quiet")
    return Table([json.loads(line) for line in lines.splitlines()])


def memory(model: Model, *, gpu: str, batch: int, framework: str | None = "pytorch", by: str = "category",
           **flags: Any) -> Table:
    """Bytes of GPU memory by "category", "layer" or "time"; ``totals``: model, context, total, usable, and what the
    framework's allocator requested, allocated and reserved."""
    with _named(model) as name:
        return _table(run_json("memory", name, *options(gpu=gpu, batch=batch, framework=framework, by=by, **flags)))


def max_batch(model: Model, *, gpu: str | Sequence[str], framework: str | None = "pytorch", **flags: Any) -> Table:
    """The largest batch that fits each GPU, its memory and what the next one lacks, in bytes."""
    rows: list[Any] = []
    with _named(model) as name:
        for each in _each(gpu):
            table = _table(run_json("max-batch", name, *options(gpu=each, framework=framework, **flags)))
            rows += [row.to_dict() for row in table]
    return Table(rows)


def whatif(model: Model, *, gpu: str, batch: int, framework: str | None = "pytorch", **flags: Any) -> Table:
    """Every metric before and after changes (``set=["gpu.memory_bandwidth=+50%"]``, ``changes=[...]``), or what would
    help most where there are none."""
    with _named(model) as name:
        return _table(run_json("whatif", name, *options(gpu=gpu, batch=batch, framework=framework, **flags)))


def scaling(model: Model, *, batch: int | Sequence[int], framework: str | None = "pytorch", **flags: Any) -> Table:
    """Throughput, speed-up and efficiency on several GPUs and machines: ``gpu="t4", gpus=[1, 2, 4], machines=[1, 2],
    network="25 Gbit/s"`` or ``machine="dgx1_v100"``."""
    with _named(model) as name:
        return _table(run_json("scaling", name, *options(batch=batch, framework=framework, **flags)))


def tta(model: Model, *, gpu: str, framework: str | None = "pytorch", **flags: Any) -> Table:
    """Time, cost and energy until the model reaches its target: ``target="0.759 top-1"``, ``batch="best"`` or samples on each
    GPU, ``gpus=[1, 2, 4, 8]``, ``machines=[1, 2]``, ``global_batch=4096``. Times are in s, energy in J."""
    with _named(model) as name:
        return _table(run_json("tta", name, *options(gpu=gpu, framework=framework, **flags)))


def plan(model: Model, *, gpu: str, gpus: int, global_batch: int, seq_len: int, **flags: Any) -> Table:
    """The fastest layouts of a decoder's training on many GPUs, or one in detail: ``dp=16, tp=8, sequence_parallel=True``; with
    ``set=["gpu.memory_bandwidth=+50%"]`` metrics before and after. Step times are in s, memory is that of the fullest GPU in bytes."""
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in flags.items()}
    with _named(model) as name:
        return _table(run_json("plan", name, *options(gpu=gpu, gpus=gpus, global_batch=global_batch, seq_len=seq_len, **texts)))


def kernels(model: Model, *, gpu: str, batch: int | Sequence[int], framework: str | None = "pytorch",
            **flags: Any) -> Table:
    """Every kernel of an iteration: work, bytes, time in s, what bounds it, where its time comes from."""
    with _named(model) as name:
        return _table(run_json("kernels", name, *options(gpu=gpu, batch=batch, framework=framework, **flags)))


def show(what: Model, **flags: Any) -> Table:
    """A model's layers with parameters and multiply-adds, or the fields of a GPU, machine, data set, ..."""
    with _named(what) as name:
        return _table(run_json("show", name, *options(**flags)))


def list_of(kind: str) -> Table:
    """What the catalogue holds: "gpus", "models", "frameworks", "machines", "metrics", ..."""
    return _table(run_json("list", kind))


def validate(runs: str | Path | None = None, **flags: Any) -> Table:
    """Errors of predictions against measured runs by group; ``runs``: a CSV as docs/formats.md describes, by default the
    project's own."""
    return _table(run_json("validate", *options(runs=runs, **flags)))


def observations(suite: str = "tbd", **flags: Any) -> Table:
    """Which observations of a benchmark's paper hold of what is predicted, with the evidence; ``suite``: "tbd" or "dawnbench"."""
    return _table(run_json("observations", *options(suite=suite, **flags)))


def report(output: str | Path, model: Model | None = None, *, gpu: str, **flags: Any) -> Path:
    """Writes the paper's figures for a GPU as one HTML file; returns its path. Without a model those of the TBD suite;
    ``against=["p4000", "t4"]``: compared with these GPUs."""
    with contextlib.ExitStack() as files:
        name = None if model is None else files.enter_context(_named(model))
        run("report", *options(model=name, gpu=gpu, output=output, **flags))
    return Path(output)


def trace(output: str | Path, model: Model, *, gpu: str, batch: int, framework: str | None = "pytorch", **flags: Any) -> Path:
    """Writes one iteration as a trace for ui.perfetto.dev; returns its path."""
    with _named(model) as name:
        run("trace", name, *options(gpu=gpu, batch=batch, framework=framework, output=output, **flags))
    return Path(output)


def compare(profile: str | Path, model: Model, *, batch: int, framework: str | None = "pytorch", **flags: Any) -> Table:
    """A measured profile (Chrome trace of the PyTorch profiler, CSV of nsys, nvprof or ncu) beside the prediction of the
    same run, a row for each kind of kernels; ``totals`` has the step. ``on="h100_sxm"``: what it would take there."""
    with _named(model) as name:
        return _table(run_json("compare", str(profile),
                               *options(model=name, batch=batch, framework=framework, **flags)))


def import_files(*files: str | Path, output: str | Path, **flags: Any) -> str:
    """Makes files of tbd-sim in the folder ``output`` of files that other tools wrote (docs/import.md); returns what was
    recognised and written, as text. ``gpu="rtx4090"``, ``set=["tdp=250W"]``: what the files do not say."""
    return run("import", *map(str, files), *options(output=output, **flags))


def serve(model: Model | None = None, **flags: Any) -> None:
    """Serves the page with sliders until Ctrl-C and prints its address: ``gpu="t4", port=0`` (a free one)."""
    with _all_named(model) as names:
        code = run_program("serve", *options(model=names or None, **flags))
    if code not in (0, 130):
        raise TbdSimError("the page was not served: see standard error")


def doctor() -> Table:
    """What of tbd-sim is installed: data, profiles, optional parts."""
    return _table(run_json("doctor"))
