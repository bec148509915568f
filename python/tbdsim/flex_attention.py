"""FlexAttention on shapes alone: its one kernel is recorded as that of scaled dot-product attention."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from .replaced import replaced

#: Positions at which a mask is looked at: as many queries and keys, the first ones.
_LOOKED_AT = 64


def _allowed(mask: Callable[..., torch.Tensor], queries: int, keys: int) -> torch.Tensor | None:
    """Returns whether each of the first queries sees each of the first keys, of sample and head 0; None for a mask that needs
    values which a capture has not."""
    from torch._C import DisableTorchFunction
    from torch.utils._python_dispatch import _disable_current_modes

    rows, columns = min(queries, _LOOKED_AT), min(keys, _LOOKED_AT)
    with _disable_current_modes(), DisableTorchFunction():
        zero = torch.zeros((), dtype=torch.int64, device="cpu")
        try:
            seen = mask(zero, zero, torch.arange(rows, device="cpu")[:, None], torch.arange(columns, device="cpu")[None, :])
        except Exception:  # the mask is the user's own code
            return None
        return seen.expand(rows, columns) if seen.device.type == "cpu" else None


def is_causal(mask: Callable[..., torch.Tensor], queries: int, keys: int) -> bool | None:
    """Whether a mask hides later keys and nothing else; None: it hides other keys, or cannot be told."""
    seen = _allowed(mask, queries, keys)
    if seen is None:
        return None
    if bool(seen.all()):
        return False
    return True if queries == keys and torch.equal(seen, torch.ones_like(seen).tril()) else None


@contextmanager
def flex_attention_as_one(warn: Callable[[str], None]) -> Iterator[None]:
    """Lets `torch.nn.attention.flex_attention` run on shapes alone until the block ends. A step that uses it has imported it before."""
    module = sys.modules.get("torch.nn.attention.flex_attention")

    def attention(query: Any, key: Any, value: Any, score_mod: Any, block_mask: Any, scale: Any, *_: Any, **__: Any) -> Any:
        causal = is_causal(block_mask[-1], query.shape[-2], key.shape[-2])
        if causal is None:
            warn("flex_attention: which blocks its mask leaves out is not known; all of them are recorded")
        grouped = query.shape[1] != key.shape[1]
        out = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=bool(causal), scale=scale, enable_gqa=grouped
        )
        sums = query.new_empty(query.shape[:-1], dtype=torch.float32)
        return out, sums, sums

    with ExitStack() as stack:
        stack.enter_context(replaced(module, "_validate_device", lambda *_: None))
        stack.enter_context(replaced(module, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True))
        stack.enter_context(replaced(module, "flex_attention_hop", attention))
        yield
