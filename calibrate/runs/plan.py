"""What to measure, most valuable first, with the seconds each configuration should take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from catalogue import BY_NAME, MODELS, PRECISIONS, Model

GMACS_PER_SECOND = {"fp32": 20e3, "tf32": 100e3, "bf16": 150e3}
"""Rough sustained rates of a Hopper card, for the estimate alone; half a TFLOP rate, since a MAC is two flops."""
EXTRA_SECONDS = {"eager": 1.5, "cuda_graph": 2.5, "compile": 60.0, "counters": 60.0}
MIN_ITERATIONS = 10
TARGET_ITERATIONS = 50
TIMED_SECONDS = 4.0


@dataclass(frozen=True)
class Configuration:
    model: str
    batch: int
    precision: str
    mode: str

    @property
    def key(self) -> str:
        return f"{self.model}/b{self.batch}/{self.precision}/{self.mode}"

    @staticmethod
    def parse(key: str) -> Configuration:
        model, batch, precision, mode = key.split("/")
        return Configuration(model, int(batch.removeprefix("b")), precision, mode)


def iterations_for(seconds: float) -> int:
    """How many iterations of this length to time: 50, or a second's worth of short ones, or fewer if they are long."""
    wanted = max(TARGET_ITERATIONS, math.ceil(1.0 / seconds))
    affordable = max(MIN_ITERATIONS, int(TIMED_SECONDS / seconds))
    return min(wanted, affordable)


def estimated_seconds(configuration: Configuration) -> float:
    """Guess for one whole configuration on a card of the Hopper class."""
    model = BY_NAME[configuration.model]
    work = model.gmac * configuration.batch / GMACS_PER_SECOND[configuration.precision]
    iteration = max(work, model.host_seconds)
    warm_up, memory, phases, profiled, after = 5, 2, 10, 3, 5
    iterations = warm_up + memory + iterations_for(iteration) + phases + profiled + after
    return model.setup_seconds + EXTRA_SECONDS[configuration.mode] + iteration * iterations


def _value(model: Model, configuration: Configuration) -> int:
    """Rank of a configuration; the smaller, the earlier. See `full_plan`."""
    reference = configuration.batch == model.batches[0]
    precision = configuration.precision
    if configuration.mode == "eager":
        if reference:
            return 0 if precision == "fp32" else 1
        return {"fp32": 2, "bf16": 4, "tf32": 5}[precision]
    return {"cuda_graph": 3, "counters": 6, "compile": 7}[configuration.mode]


def _configurations(model: Model) -> Iterable[Configuration]:
    reference = model.batches[0]
    for batch in model.batches:
        for precision in PRECISIONS:
            yield Configuration(model.name, batch, precision, "eager")
    for mode in ("cuda_graph", "compile"):
        if mode in model.modes:
            for precision in ("fp32", "bf16"):
                yield Configuration(model.name, reference, precision, mode)
    if "counters" in model.modes:
        yield Configuration(model.name, reference, "fp32", "counters")


def full_plan() -> list[Configuration]:
    """Every model at its reference batch in fp32, then the other precisions, then the other batches in fp32, CUDA
    graphs, the other batches in bf16 and tf32, hardware counters, torch.compile."""
    ranked = [(_value(model, c), c) for model in MODELS for c in _configurations(model)]
    return [c for _, c in sorted(ranked, key=lambda pair: pair[0])]


def select(
    plan: Sequence[Configuration],
    model: str | None = None,
    batch: int | None = None,
    precision: str | None = None,
    mode: str | None = None,
) -> list[Configuration]:
    """The part of the plan that was asked for. A named model runs with any batch, precision and mode it has."""
    chosen = [
        c for c in plan if model in (None, c.model) and precision in (None, c.precision) and mode in (None, c.mode)
    ]
    if model is not None and not chosen:
        chosen = [Configuration(model, BY_NAME[model].batches[0], precision or "fp32", mode or "eager")]
    if batch is not None:
        chosen = [replace(c, batch=batch) for c in chosen]
    return list(dict.fromkeys(chosen))
