"""What a model file hands to the measuring loop: something that can train one iteration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from errors import CannotRun

Phase = Callable[[str], AbstractContextManager[None]]
"""Opened around each part of a step: "forward", "backward", "double_backward" or "optimizer"."""


def no_phases(_name: str) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True)
class Options:
    device: torch.device
    precision: str = "fp32"
    capturable: bool = False
    """The optimizer keeps its step count on the device, as capture into a CUDA graph needs."""

    def autocast(self) -> AbstractContextManager[None]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.precision == "bf16" else nullcontext()


class Workload(ABC):
    modules: Sequence[nn.Module]
    optimizers: Sequence[Optimizer]
    inputs: Sequence[Tensor]
    """What lies on the device from one iteration to the next besides weights, buffers and optimizer state."""

    @abstractmethod
    def step(self, phase: Phase) -> Tensor:
        """Trains one iteration and returns its loss, detached and on the device."""

    def compile(self) -> None:
        raise CannotRun("has no single network for torch.compile")


class Supervised(Workload):
    """One forward pass, one backward pass, one update. `loss(network, inputs)` is the forward pass."""

    def __init__(
        self,
        network: nn.Module,
        optimizer: Optimizer,
        inputs: Sequence[Tensor],
        loss: Callable[..., Tensor],
        options: Options,
        clip: Callable[[Sequence[nn.Parameter]], object] | None = None,
    ) -> None:
        self.modules = [network]
        self.optimizers = [optimizer]
        self.inputs = inputs
        self._network: Callable[..., object] = network
        self._optimizer = optimizer
        self._loss = loss
        self._options = options
        self._clip = clip
        self._trained = [p for p in network.parameters() if p.requires_grad]

    def step(self, phase: Phase) -> Tensor:
        with phase("forward"), self._options.autocast():
            loss = self._loss(self._network, *self.inputs)
        with phase("backward"):
            loss.backward()
        with phase("optimizer"):
            if self._clip is not None:
                self._clip(self._trained)
            self._optimizer.step()
            self._optimizer.zero_grad()
        return loss.detach()

    def compile(self) -> None:
        self._network = torch.compile(self.modules[0])
