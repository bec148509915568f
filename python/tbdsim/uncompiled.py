"""`torch.compile` and CUDA graphs in a capture: what they are given runs as it is, since both are rewritings of the step that was recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from .errors import CaptureError
from .replaced import replaced


def _as_it_is(model: Any = None, **_: Any) -> Any:
    """Returns what `torch.compile` is given; a decorator where that is nothing yet."""
    return model if model is not None else _as_it_is


def _graphed_as_it_is(callables: Any, *_: Any, **__: Any) -> Any:
    """Returns what `torch.cuda.make_graphed_callables` is given."""
    return callables


class _NoGraph:
    """Stands for `torch.cuda.CUDAGraph` and `torch.cuda.graph`: a class, since annotations of libraries name both."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise CaptureError(
            "torch.cuda.CUDAGraph: a graph runs no operators that could be recorded; capture the step as it runs without one, and predict "
            "it with `--framework pytorch_compiled_graphs`"
        )


@contextmanager
def uncompiled() -> Iterator[None]:
    """Lets `torch.compile`, and what it compiled before, do nothing until the block ends. A CUDA graph is an error."""
    with ExitStack() as stack:
        stack.enter_context(replaced(torch, "compile", _as_it_is))
        stack.enter_context(replaced(torch.nn.Module, "compile", lambda *_, **__: None))
        stack.enter_context(replaced(torch.cuda, "make_graphed_callables", _graphed_as_it_is))
        for name in ("CUDAGraph", "graph"):
            stack.enter_context(replaced(torch.cuda, name, _NoGraph))
        if "torch._dynamo" in sys.modules:  # importing it takes longer than a capture
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield
