"""`torch.cuda` as a program meets it on a machine with one GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from .cuda_streams import STREAMS
from .replaced import replaced

#: What functions of `torch.cuda` give on a machine with one GPU that nothing else uses.
_ANSWERS: dict[str, Any] = {
    "is_available": True,
    "is_initialized": True,
    "is_bf16_supported": True,
    "is_current_stream_capturing": False,
    "device_count": 1,
    "current_device": 0,
    "get_device_capability": (9, 0),
    "get_device_name": "a GPU",
    "set_device": None,
    "empty_cache": None,
    "reset_peak_memory_stats": None,
    "memory_allocated": 0,
    "max_memory_allocated": 0,
    "memory_reserved": 0,
    "max_memory_reserved": 0,
    "manual_seed": None,
    "manual_seed_all": None,
}


def _giving(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


@contextmanager
def one_gpu() -> Iterator[None]:
    """Lets programs that ask for a GPU find one until the block ends."""
    with ExitStack() as stack:
        for name, answer in _ANSWERS.items():
            stack.enter_context(replaced(torch.cuda, name, _giving(answer)))
        for name, stand_in in STREAMS.items():
            stack.enter_context(replaced(torch.cuda, name, stand_in))
        stack.enter_context(replaced(torch.cuda, "synchronize", _giving(None)))
        stack.enter_context(replaced(torch.Tensor, "record_stream", _giving(None)))  # one stream frees nothing too early
        # optimizers ask the driver whether a CUDA graph is being recorded
        for name in ("_accelerator_graph_capture_health_check", "_cuda_graph_capture_health_check"):
            stack.enter_context(replaced(torch.optim.Optimizer, name, _giving(None)))
        yield
