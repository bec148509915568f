"""`torch.cuda` as a program meets it on a machine with one GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch

from .cuda_streams import STREAMS
from .replaced import replaced

_MEMORY = 80 * 2**30
#: What programs choose kernels and batches by: those of an H100, as its compute capability below.
_PROPERTIES = SimpleNamespace(
    name="a GPU", major=9, minor=0, total_memory=_MEMORY, multi_processor_count=132, warp_size=32, max_threads_per_multi_processor=2048,
    shared_memory_per_block_optin=232448, L2_cache_size=50 * 2**20, is_integrated=False, gcnArchName="",
    regs_per_multiprocessor=65536, shared_memory_per_block=49152, shared_memory_per_multiprocessor=233472, is_multi_gpu_board=False, uuid="",
)  # fmt: skip

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
    "get_device_properties": _PROPERTIES,
    "get_arch_list": ["sm_90"],
    "is_tf32_supported": True,
    "mem_get_info": (_MEMORY, _MEMORY),
    "memory_stats": defaultdict(int),
    "memory_summary": "",
    "reset_max_memory_allocated": None,
    "reset_max_memory_cached": None,
    "reset_accumulated_memory_stats": None,
    "ipc_collect": None,
    "init": None,
    "_lazy_init": None,
    "get_rng_state": torch.zeros(16, dtype=torch.uint8),
    "get_rng_state_all": [torch.zeros(16, dtype=torch.uint8)],
    "set_rng_state": None,
    "set_rng_state_all": None,
    "device": nullcontext(),
    "device_of": nullcontext(),
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
        for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
            stack.enter_context(replaced(torch.cuda.nvtx, name, _giving(None)))
        stack.enter_context(replaced(torch.cuda.nvtx, "range", _giving(nullcontext())))
        stack.enter_context(replaced(torch.Tensor, "record_stream", _giving(None)))  # one stream frees nothing too early
        # optimizers ask the driver whether a CUDA graph is being recorded
        for name in ("_accelerator_graph_capture_health_check", "_cuda_graph_capture_health_check"):
            stack.enter_context(replaced(torch.optim.Optimizer, name, _giving(None)))
        yield
