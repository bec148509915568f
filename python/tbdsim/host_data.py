"""Data loaders of a script, and the counter of steps that Adagrad makes when it is built, are on the host, wherever tensors are made
without a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib import import_module
from typing import Any

import torch

from .replaced import replaced


def _on_host(function: Any) -> Any:
    def run(self: Any) -> Any:
        with torch.device("cpu"), replaced(self, "pin_memory", False):  # a thread that pins memory would look for the GPU
            return function(self)

    return run


def _built_on_host(init: Any) -> Any:
    @wraps(init)
    def build(self: Any, *args: Any, **kwargs: Any) -> None:
        with torch.device("cpu"):
            init(self, *args, **kwargs)

    return build


@contextmanager
def host_data() -> Iterator[None]:
    """Lets data loaders draw samples, read them and put batches together on the host, and Adagrad count there, until the block ends."""
    loaders = import_module("torch.utils.data.dataloader")
    with ExitStack() as stack:
        for owner, name in ((loaders.DataLoader, "__iter__"), (loaders._BaseDataLoaderIter, "__next__")):
            stack.enter_context(replaced(owner, name, _on_host(getattr(owner, name))))
        stack.enter_context(replaced(torch.optim.Adagrad, "__init__", _built_on_host(torch.optim.Adagrad.__init__)))
        yield
