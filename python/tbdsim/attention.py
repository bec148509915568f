"""Scaled dot-product attention as one operator, forward and backward.

PyTorch takes `scaled_dot_product_attention` apart before dispatch, into what depends on the device. A GPU runs flash,
memory-efficient, cuDNN's or the plain form, by rules of PyTorch's version: the step file keeps the one operator, and the lowering
of a version chooses.
"""

from __future__ import annotations

from typing import Any

import torch

_library = torch.library.Library("tbdsim", "DEF")
_library.define(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, float dropout, bool causal, float? scale)"
    " -> Tensor"
)
_library.define(
    "scaled_dot_product_attention_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor output, Tensor? mask,"
    " float dropout, bool causal, float? scale, bool mask_gradient) -> (Tensor, Tensor, Tensor, Tensor?)"
)


def _forward(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, dropout: float, causal: bool, scale: Any
) -> torch.Tensor:
    """Returns (..., heads, length, width of value), laid out as flash attention writes it: the heads of a token side by side."""
    *outer, length, _ = query.shape
    shape = [*outer, length, value.shape[-1]]
    if len(shape) != 4:
        return query.new_empty(shape)
    batch, heads, length, width = shape
    return query.new_empty([batch, length, heads, width]).transpose(1, 2)


def _backward(
    gradient: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    output: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
    mask_gradient: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Returns the gradients of query, key and value in their shapes, and that of the mask where it is asked for."""
    gradients = [_forward(tensor, tensor, tensor, None, 0.0, False, None) for tensor in (query, key, value)]
    of_mask = torch.empty_like(mask) if mask_gradient and mask is not None else None
    return gradients[0], gradients[1], gradients[2], of_mask


_library.impl("scaled_dot_product_attention", _forward, "Meta")
_library.impl("scaled_dot_product_attention_backward", _backward, "Meta")


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, *options: Any
    ) -> torch.Tensor:
        output = torch.ops.tbdsim.scaled_dot_product_attention(query, key, value, mask, *options)
        ctx.save_for_backward(query, key, value, output, mask)
        ctx.options = options
        return output

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        query, key, value, output, mask = ctx.saved_tensors
        gradients = torch.ops.tbdsim.scaled_dot_product_attention_backward(
            gradient, query, key, value, output, mask, *ctx.options, ctx.needs_input_grad[3]
        )
        return (*gradients, None, None, None)


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Stands in for PyTorch's operator of that name. With `enable_gqa` key and value have fewer heads than query."""
    return _Attention.apply(query, key, value, attn_mask, dropout_p, is_causal, scale)
