"""`torch.compile` in a capture: what it is given runs as it is, since a compiler is a rewriting of the step that was recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from .replaced import replaced


def _as_it_is(model: Any = None, **_: Any) -> Any:
    """Returns what `torch.compile` is given; a decorator where that is nothing yet."""
    return model if model is not None else _as_it_is


@contextmanager
def uncompiled() -> Iterator[None]:
    """Lets `torch.compile`, and what it compiled before, do nothing until the block ends."""
    with ExitStack() as stack:
        stack.enter_context(replaced(torch, "compile", _as_it_is))
        stack.enter_context(replaced(torch.nn.Module, "compile", lambda *_, **__: None))
        if "torch._dynamo" in sys.modules:  # importing it takes longer than a capture
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield
