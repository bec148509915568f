"""Data parallelism as one process of it: tbd-sim adds what several GPUs exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from inspect import unwrap
from types import FunctionType
from typing import Any, NoReturn

import torch

from .errors import CaptureError
from .replaced import replaced

# Methods of classes are replaced, and the code of a function: scripts import both by name, before anything is captured.


def _init(self: Any, module: torch.nn.Module, *_: Any, **__: Any) -> None:
    torch.nn.Module.__init__(self)
    self.module = module


def _forward(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self.module(*args, **kwargs)


@contextmanager
def _no_sync(_: Any) -> Iterator[None]:
    yield


def _no_hook(*_: Any, **__: Any) -> None:
    """Registers no hook of the exchange, of which there is none."""


_ONE_PROCESS: dict[str, Callable[..., Any]] = {
    "__init__": _init, "forward": _forward, "no_sync": _no_sync, "train": torch.nn.Module.train, "register_comm_hook": _no_hook,
}  # fmt: skip


def _no_shards(*_: Any, **__: Any) -> NoReturn:
    raise CaptureError(
        "fully sharded data parallelism: a capture is of one GPU; leave FSDP and fully_shard out of the step, and let "
        "`tbd-sim plan STEP --zero 3` or `tbdsim.plan(step, zero=3)` shard it"
    )


def _started_for_capture(*_: Any, **__: Any) -> None:
    """Stands for the code of `init_process_group`, in whose module it runs: it knows that module's names alone."""
    from tbdsim.one_process import start_process_group

    start_process_group()


def _copy(function: Any) -> FunctionType:
    return FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


_init_process_group: list[FunctionType] = []  # PyTorch's, while another stands for it


def start_process_group() -> None:
    """Starts a group of one process that exchanges nothing, unless there is a group."""
    if not torch.distributed.is_initialized():
        store = import_module("torch.testing._internal.distributed.fake_pg").FakeStore()
        _init_process_group[-1]("fake", rank=0, world_size=1, store=store)


@contextmanager
def _own_group() -> Iterator[None]:
    """Lets `init_process_group` start a group of one process, of which nothing is left behind the block."""
    function = unwrap(torch.distributed.init_process_group)
    _init_process_group.append(_copy(function))
    started = torch.distributed.is_initialized()
    with ExitStack() as stack:
        stack.callback(_init_process_group.pop)
        stack.enter_context(replaced(function, "__code__", _started_for_capture.__code__))
        stack.enter_context(replaced(function, "__defaults__", None))
        try:
            yield
        finally:
            if not started and torch.distributed.is_initialized():
                torch.distributed.destroy_process_group()


@contextmanager
def one_process() -> Iterator[None]:
    """Lets scripts for several GPUs run as one process of them, until the block ends."""
    sharded = import_module("torch.distributed.fsdp")
    with ExitStack() as stack:
        for name, method in _ONE_PROCESS.items():
            stack.enter_context(replaced(torch.nn.parallel.DistributedDataParallel, name, method))
        stack.enter_context(replaced(torch.nn.DataParallel, "forward", _forward))
        stack.enter_context(replaced(sharded.FullyShardedDataParallel, "__init__", _no_shards))
        stack.enter_context(replaced(sharded, "fully_shard", _no_shards))
        if torch.distributed.is_available():
            stack.enter_context(_own_group())
        yield
