"""One training step of a model, as a training loop in PyTorch has it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from .losses import LossSource, build_loss
from .meta import build_model, map_tensors, with_batch
from .optimizers import OptimizerSource, build_optimizer

#: Autocast's dtype by precision.
AUTOCAST = {"fp16": torch.float16, "bf16": torch.bfloat16}
#: The dtype of the parameters themselves, by precision.
PURE = {"pure_fp16": torch.float16, "pure_bf16": torch.bfloat16}
PRECISIONS = ("fp32", "tf32", *AUTOCAST, *PURE)


@dataclass
class Options:
    """How a model is trained; see `tbdsim.capture`."""

    loss: LossSource
    optimizer: OptimizerSource
    precision: str
    channels_last: bool
    batch_axis: int
    targets: Any
    gradient_scaler: bool | None
    clip_norm: float | None
    set_to_none: bool


class ModelTraining:
    """A model on "meta" with its optimizer, and its step at any batch."""

    def __init__(self, model: torch.nn.Module | Callable[[], torch.nn.Module], inputs: Any, options: Options) -> None:
        if options.precision not in PRECISIONS:
            raise ValueError(f"precision is '{options.precision}': expected one of {', '.join(PRECISIONS)}")
        self.model = build_model(model)
        if options.precision in PURE:
            self.model.to(PURE[options.precision])
        if options.channels_last:
            self.model.to(memory_format=torch.channels_last)
        self.inputs, self.options = inputs, options
        self.loss = build_loss(options.loss)
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = build_optimizer(options.optimizer, trained)
        scale = options.precision == "fp16" if options.gradient_scaler is None else options.gradient_scaler
        self.scaler = torch.amp.GradScaler("cuda", enabled=scale and self.optimizer is not None)

    def batch_of(self, source: Any, batch: int) -> Any:
        """Returns inputs or targets of a batch, in the precision and memory format of the model."""

        def formatted(tensor: torch.Tensor) -> torch.Tensor:
            if self.options.precision in PURE and tensor.is_floating_point():
                tensor = tensor.to(PURE[self.options.precision])
            return (
                tensor.contiguous(memory_format=torch.channels_last)
                if self.options.channels_last and tensor.dim() == 4
                else tensor
            )

        return map_tensors(with_batch(source, batch, self.options.batch_axis), formatted)

    def __call__(self, batch: int) -> Callable[[], None]:
        """Returns the step at a batch."""
        inputs = self.batch_of(self.inputs, batch)
        targets = self.batch_of(self.options.targets, batch) if self.options.targets is not None else ()
        dtype = AUTOCAST.get(self.options.precision)

        def step() -> None:
            self._zero_gradients()
            with torch.autocast("cuda", dtype=dtype) if dtype is not None else nullcontext():
                output = self._forward(inputs)
                loss = self.loss(output, *(targets if isinstance(targets, (list, tuple)) else [targets]))
            del output
            self.scaler.scale(loss).backward()
            if self.optimizer is not None:
                self._update(self.optimizer)

        return step

    def _forward(self, inputs: Any) -> Any:
        if isinstance(inputs, dict):
            return self.model(**inputs)
        return self.model(*inputs) if isinstance(inputs, (list, tuple)) else self.model(inputs)

    def _zero_gradients(self) -> None:
        owner = self.optimizer if self.optimizer is not None else self.model
        owner.zero_grad(set_to_none=self.options.set_to_none)

    def _update(self, optimizer: torch.optim.Optimizer) -> None:
        if self.options.clip_norm is not None:
            self.scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip_norm)
        self.scaler.step(optimizer)
        self.scaler.update()
