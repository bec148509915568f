"""Device memory of a training step by category, from tensor sizes and the allocator's own counters."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from execution import Step
from workload import Workload, no_phases


@dataclass(frozen=True)
class Memory:
    """Bytes. None where it cannot be known (no GPU, or a captured step)."""

    weights: int
    gradients: int
    optimizer_state: int
    aux_state: int
    """Buffers that are not trained: batch norm's running statistics, masks, position tables."""
    input_io: int
    feature_maps: int | None
    """The most that a forward phase leaves allocated for the backward pass."""
    allocated_before: int | None
    """What an earlier configuration left behind; 0 if all is well."""
    allocated_peak: int | None
    reserved_peak: int | None


class ForwardStash:
    """A `Phase` that watches how much memory each forward phase leaves behind."""

    def __init__(self) -> None:
        self._start = torch.cuda.memory_allocated()
        self.most: int | None = None

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        yield
        if name == "forward":
            self.most = max(self.most or 0, torch.cuda.memory_allocated() - self._start)


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def allocated(device: torch.device) -> int | None:
    return torch.cuda.memory_allocated() if device.type == "cuda" else None


def release() -> None:
    """Gives back what the allocator holds in reserve, cuBLAS workspaces included."""
    if torch.cuda.is_initialized():
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()


def measure(workload: Workload, step: Step, device: torch.device, before: int | None, snapshot: Path | None) -> Memory:
    """Runs two steps after emptying the allocator's reserve, so that what the warm-up tried out does not count."""
    stash, allocated_peak, reserved_peak = None, None, None
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        if snapshot is not None:
            torch.cuda.memory._record_memory_history()
        step(no_phases)
        forward = ForwardStash()
        step(forward)
        torch.cuda.synchronize()
        stash = forward.most
        if stash is not None:  # a replayed graph allocates nothing that the counters could see
            allocated_peak = torch.cuda.max_memory_allocated()
        reserved_peak = torch.cuda.max_memory_reserved()
        if snapshot is not None:
            snapshot.parent.mkdir(parents=True, exist_ok=True)
            torch.cuda.memory._dump_snapshot(str(snapshot))
            torch.cuda.memory._record_memory_history(enabled=None)
    parameters = [p for module in workload.modules for p in module.parameters()]
    states = itertools.chain.from_iterable(o.state.values() for o in workload.optimizers)
    return Memory(
        weights=_bytes(parameters),
        gradients=_bytes(p for p in parameters if p.requires_grad),
        optimizer_state=_bytes(v for state in states for v in state.values() if isinstance(v, Tensor)),
        aux_state=_bytes(b for module in workload.modules for b in module.buffers()),
        input_io=_bytes(workload.inputs),
        feature_maps=stash,
        allocated_before=before,
        allocated_peak=allocated_peak,
        reserved_peak=reserved_peak,
    )
