"""How CUDA's kernels lay out what they write, where PyTorch's shape functions for the device "meta" say otherwise."""

from __future__ import annotations

from typing import Any

import torch

_aten = torch.ops.aten


def _channels_last(tensor: torch.Tensor) -> torch.memory_format | None:
    """Returns the channels-last format in which a tensor of four or five dimensions lies; None where it does not."""
    for dimensions, memory_format in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if tensor.dim() == dimensions and tensor.is_contiguous(memory_format=memory_format) and not tensor.is_contiguous():
            return memory_format
    return None


def _convolution_backward(args: Any, result: Any) -> Any:
    """cuDNN returns both gradients in channels-last where the input or the weight lies so (`cudnn_conv_suggest_memory_format`)."""
    memory_format = _channels_last(args[1]) or _channels_last(args[2])
    if memory_format is None:
        return result
    laid_out = [None if tensor is None else tensor.contiguous(memory_format=memory_format) for tensor in result[:2]]
    return (*laid_out, result[2])


_CORRECTIONS = {_aten.convolution_backward.default: _convolution_backward}


def as_cuda_lays_out(operator: Any, args: Any, result: Any) -> Any:
    """Returns the operator's result with the strides that it has on a GPU."""
    correction = _CORRECTIONS.get(operator)
    return correction(args, result) if correction is not None else result
