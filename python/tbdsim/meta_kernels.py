"""Shapes of operators for which PyTorch has no kernel on the device "meta"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _like(argument: int) -> Callable[..., torch.Tensor]:
    """Returns a kernel whose result has shape and dtype of the argument of that number."""
    return lambda *args, **_: torch.empty_like(args[argument])


def _quantized(x: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the rounded numbers, and where none was cut off."""
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)


def _learned_quantization_backward(
    gradient: torch.Tensor, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, *_: Any, **__: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.empty_like(x), torch.empty_like(scale), torch.empty_like(zero)


def _nothing(*_: Any, **__: Any) -> None:
    """Changes its arguments in place."""


def _cudnn_rnn_backward(
    input: torch.Tensor, weight: list[torch.Tensor], _: int, __: Any, hx: torch.Tensor, cx: Any, *others: Any
) -> Any:
    """Returns the gradients of input, hidden state, cell state and weights, in their shapes."""
    of_cell = None if cx is None else torch.empty_like(cx)
    return torch.empty_like(input), torch.empty_like(hx), of_cell, [torch.empty_like(tensor) for tensor in weight]


_KERNELS: dict[str, Callable[..., Any]] = {
    "_cudnn_rnn_backward": _cudnn_rnn_backward,
    "_ctc_loss_backward": _like(1),
    "_ctc_loss_backward.Tensor": _like(1),
    "multi_margin_loss_backward": _like(1),
    "multilabel_margin_loss_backward": _like(1),
    "fake_quantize_per_tensor_affine_cachemask": _quantized,
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": _quantized,
    "fake_quantize_per_channel_affine_cachemask": _quantized,
    "_fused_moving_avg_obs_fq_helper": _quantized,
    "_fake_quantize_learnable_per_tensor_affine": _like(0),
    "_fake_quantize_learnable_per_channel_affine": _like(0),
    "_fake_quantize_learnable_per_tensor_affine_backward": _learned_quantization_backward,
    "_fake_quantize_learnable_per_channel_affine_backward": _learned_quantization_backward,
    "_fused_sgd_": _nothing,
    "_fused_sgd_.tensor_lr": _nothing,
    "_fused_adagrad_": _nothing,
    "_fused_adam_.tensor_lr": _nothing,
    "_fused_adamw_.tensor_lr": _nothing,
}


def meta_kernels() -> torch.library.Library:
    """Returns the kernels, registered until the library is destroyed; those that this PyTorch has are left alone."""
    library = torch.library.Library("aten", "IMPL")
    for name, kernel in _KERNELS.items():
        packet, _, which = name.partition(".")
        exists = hasattr(getattr(torch.ops.aten, packet, None), which or "default")
        if exists and not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "Meta"):
            library.impl(name, kernel, "Meta")
    return library
