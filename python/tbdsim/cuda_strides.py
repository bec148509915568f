"""How CUDA's kernels lay out what they write, where PyTorch's shape functions for the device "meta" say otherwise."""

from __future__ import annotations

from typing import Any

import torch
from torch._prims_common import suggest_memory_format

_aten = torch.ops.aten


def _of_convolution(input: torch.Tensor, weight: torch.Tensor) -> torch.memory_format:
    """Returns the format in which cuDNN computes: channels-last where input or weight lie so (`cudnn_conv_suggest_memory_format`)."""
    formats = {suggest_memory_format(input), suggest_memory_format(weight)} - {torch.contiguous_format}
    return formats.pop() if formats else torch.contiguous_format


def _convolution(args: Any, result: Any) -> Any:
    return result.contiguous(memory_format=_of_convolution(args[0], args[1]))


def _convolution_backward(args: Any, result: Any) -> Any:
    memory_format = _of_convolution(args[1], args[2])
    return tuple(
        tensor if tensor is None or tensor.dim() < 4 else tensor.contiguous(memory_format=memory_format) for tensor in result
    )


def _first_like(argument: int) -> Any:
    """Batch normalization writes in the format of its input, the argument of that number, whatever that of the gradient."""

    def correct(args: Any, result: Any) -> Any:
        if result[0] is None or result[0].dim() < 4:
            return result
        return (result[0].contiguous(memory_format=suggest_memory_format(args[argument])), *result[1:])

    return correct


def _first_contiguous(_: Any, result: Any) -> Any:
    """Group normalization on a GPU computes in the contiguous format alone (`native_group_norm`)."""
    return (None if result[0] is None else result[0].contiguous(), *result[1:])


def _hardswish_backward(args: Any, result: Any) -> Any:
    """An element-wise kernel takes the strides of its first operand, the gradient."""
    return torch.empty_like(args[0])


_CORRECTIONS = {
    _aten.hardswish_backward.default: _hardswish_backward,
    _aten.convolution.default: _convolution,
    _aten.convolution_backward.default: _convolution_backward,
    _aten.native_batch_norm.default: _first_like(0),
    _aten.native_batch_norm_backward.default: _first_like(1),
    _aten.native_group_norm.default: _first_contiguous,
    _aten.native_group_norm_backward.default: _first_contiguous,
}


def as_cuda_lays_out(operator: Any, args: Any, result: Any) -> Any:
    """Returns the operator's result with the strides that it has on a GPU."""
    correction = _CORRECTIONS.get(operator)
    return correction(args, result) if correction is not None else result
