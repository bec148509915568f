"""Optimizers by name, as tbd-sim and PyTorch call them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch

#: A name of `OPTIMIZERS`, what builds an optimizer from parameters, or an optimizer whose like is built.
OptimizerSource = str | Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] | torch.optim.Optimizer | None

#: Constructor and options. The multi-tensor form (`foreach`) is what PyTorch chooses on a GPU; the lowering of a framework's
#: version takes it apart where that version looped over the parameters.
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"lr": 0.1}),
    "momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {}),
    "fused_sgd": ("SGD", {"lr": 0.1, "momentum": 0.9, "fused": True}),
    "fused_adam": ("Adam", {"fused": True}),
    "fused_adamw": ("AdamW", {"fused": True}),
    "nadam": ("NAdam", {}),
    "radam": ("RAdam", {}),
    "adamax": ("Adamax", {}),
    "adagrad": ("Adagrad", {}),
    "adadelta": ("Adadelta", {}),
    "rmsprop": ("RMSprop", {}),
    "rprop": ("Rprop", {}),
    "asgd": ("ASGD", {}),
}


def build_optimizer(source: OptimizerSource, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer | None:
    """Returns the optimizer of these parameters; None where `source` is None or "none": forward and backward alone."""
    if source is None or source == "none":
        return None
    if isinstance(source, torch.optim.Optimizer):
        known = inspect.signature(type(source)).parameters
        return type(source)(parameters, **{name: value for name, value in source.defaults.items() if name in known})
    if not isinstance(source, str):
        return source(parameters)
    if source not in OPTIMIZERS:
        close = difflib.get_close_matches(source, OPTIMIZERS, 1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise ValueError(
            f"optimizer is '{source}': expected none, {', '.join(OPTIMIZERS)}, an optimizer, or a callable of the parameters{hint}"
        )
    kind, options = OPTIMIZERS[source]
    return getattr(torch.optim, kind)(parameters, **options)
