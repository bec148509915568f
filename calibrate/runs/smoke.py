"""A rehearsal without a GPU: every model trains a tiny step on the CPU, through the measuring code and the rows."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict

import torch

from catalogue import Model
from environment import describe
from errors import CannotRun
from measure import Bench, measure
from plan import Configuration
from rows import validation_rows

CPU = torch.device("cpu")


def smoke(models: Sequence[Model]) -> int:
    """Returns the number of models that failed."""
    torch.set_num_threads(1)  # several threads wait for each other on a busy machine
    bench = Bench(CPU, None, math.inf, warm_up_seconds=0.0, warm_up_steps=1, most_steps=1)
    failures = 0
    for model in models:
        try:
            print(f"{model.name}: {_one(model, bench)}", flush=True)
        except CannotRun as error:
            print(f"{model.name}: skipped: {error}", flush=True)
        except Exception as error:  # the other models are still worth a try
            failures += 1
            print(f"{model.name}: FAILED: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return failures


def _one(model: Model, bench: Bench) -> str:
    configuration = Configuration(model.name, model.tiny["batch"], "fp32", "eager")
    measured = measure(configuration, bench, model.tiny)
    if not measured["loss_finite"]:
        raise ArithmeticError("the loss is not finite")
    environment = describe(CPU, None)
    entry = asdict(configuration) | measured
    entry |= {"key": configuration.key, "gpu": "cpu", "environment": asdict(environment), "time": ""}
    phases = ", ".join(measured["phases"])
    return f"one step trained ({phases}), {len(validation_rows(entry))} rows"
