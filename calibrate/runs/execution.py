"""How a step is driven: operation by operation, as one replayed CUDA graph, or through torch.compile."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from errors import CannotRun
from workload import Phase, Workload, no_phases

Step = Callable[[Phase], Tensor]
CAPTURE_WARM_UP = 3


def prepare(workload: Workload, mode: str, device: torch.device) -> Step:
    if mode == "cuda_graph":
        return _captured(workload, device)
    if mode == "compile":
        torch._dynamo.reset()
        workload.compile()
    return workload.step


def _captured(workload: Workload, device: torch.device) -> Step:
    """The whole iteration in one graph. Phases cannot be told apart in a replay."""
    if device.type != "cuda":
        raise CannotRun("a CUDA graph needs a GPU")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(CAPTURE_WARM_UP):
            workload.step(no_phases)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = workload.step(no_phases)

    def replay(_phase: Phase) -> Tensor:
        graph.replay()
        return loss

    return replay
