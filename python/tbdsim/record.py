"""Runs a step and records it."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch

from .drawn_masks import DrawnMasks
from .environment import phases_marked
from .known_values import KnownValues, parts_of
from .modules import Modules
from .recorder import Recorder
from .recording import Recording
from .shapes import Shapes


class Values(NamedTuple):
    """What a capture knows of values, and what stands in for those that it does not; see `tbdsim.capture`."""

    known: KnownValues
    assumed_value: float | None = None
    largest_sizes: bool | float = False
    stand_in: float | None = None
    drawn: DrawnMasks | None = None


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Gives the block the host's random numbers of one seed, so that what they decide (LayerDrop, masks) is the same at every batch."""
    numpy = sys.modules.get("numpy")
    states = torch.default_generator.get_state(), random.getstate(), numpy.random.get_state() if numpy else None
    torch.default_generator.manual_seed(0)
    random.seed(0)
    if numpy:
        numpy.random.seed(0)
    try:
        yield
    finally:
        torch.default_generator.set_state(states[0])
        random.setstate(states[1])
        if numpy:
            numpy.random.set_state(states[2])


class Trained:
    """The models and optimizers of a step, found by running it once; then their gradients and state exist too."""

    def __init__(
        self, step: Callable[[], Any], model: torch.nn.Module | None, shapes: Shapes, values: Values
    ) -> None:
        # its record is thrown away, its errors name operator and module
        recorder = Recorder(Modules(model), shapes, *values)
        with recorder.modules.watched(), phases_marked(recorder), _same_random_numbers(), recorder:
            step()
        self.models, self._paths = recorder.modules.roots, recorder.modules.root_paths
        self.optimizers = list(recorder.optimizers.values())

    def has_met(self, recorder: Recorder) -> bool:
        """Whether a recorder met no models with weights and no optimizers but these."""
        known = {id(model) for model in self.models} | {id(optimizer) for optimizer in self.optimizers}
        with_weights = {id(model) for model in recorder.modules.roots if any(True for _ in model.parameters())}
        return (with_weights | recorder.optimizers.keys()) <= known

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """Returns all parameters by name: those of the models, then those that only an optimizer knows."""
        named: dict[str, torch.nn.Parameter] = {}
        for path, model in zip(self._paths, self.models):
            prefix = f"{path}." if path else ""
            named.update({prefix + name: parameter for name, parameter in model.named_parameters()})
        known = {id(parameter) for parameter in named.values()}
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if id(parameter) not in known:
                        known.add(id(parameter))
                        named[f"parameter {len(named)}"] = parameter
        return named

    def register(self, recorder: Recorder) -> None:
        """Tells the recorder what is there before the step: parameters, buffers, the optimizers' state, gradients."""
        parameters = self.parameters()
        for name, parameter in parameters.items():
            for part in parts_of(parameter):
                recorder.storages.index(part, "parameter", -1, name)
        for model in self.models:
            for name, buffer in model.named_buffers():
                for part in parts_of(buffer):
                    recorder.storages.index(part, "buffer", -1, name)
        names = {id(parameter): name for name, parameter in parameters.items()}
        for optimizer in self.optimizers:
            for parameter, state in optimizer.state.items():
                for key, value in state.items():
                    for part in parts_of(value) if isinstance(value, torch.Tensor) else ():
                        if part.is_meta:
                            recorder.storages.index(part, "state", -1, f"{names.get(id(parameter), '')}.{key}")


@contextmanager
def _gradients_marked(recorder: Recorder, parameters: dict[str, torch.nn.Parameter]) -> Iterator[None]:
    """Gives the storages of gradients their role when autograd hands them to the parameters."""

    def marking(name: str) -> Callable[[torch.Tensor], None]:
        def mark(parameter: torch.Tensor) -> None:
            if parameter.grad is not None:
                for part in parts_of(parameter.grad):
                    recorder.storages.mark(part, "gradient", name)

        return mark

    with ExitStack() as stack:
        for name, parameter in parameters.items():
            if parameter.requires_grad:
                stack.callback(parameter.register_post_accumulate_grad_hook(marking(name)).remove)
        yield


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Collects no garbage until the block ends, but where `gc.collect()` is called: then of what was made in the block alone."""
    collecting = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if collecting:
            gc.enable()


def record(step: Callable[[], Any], trained: Trained, shapes: Shapes, values: Values) -> Recording | None:
    """Returns what the step does; None where it trains other models than `trained`, whose state would be missing.

    Memory that only a cycle of references holds is freed at the step's end, as if nobody collected garbage.
    """
    recorder = Recorder(Modules(trained.models[0] if trained.models else None), shapes, *values)
    with _garbage_kept():
        trained.register(recorder)
        marked = _gradients_marked(recorder, trained.parameters())
        with recorder.modules.watched(), phases_marked(recorder), marked, _same_random_numbers(), recorder:
            step()
        gc.collect()
        return recorder.recording() if trained.has_met(recorder) else None
