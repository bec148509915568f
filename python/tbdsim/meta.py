"""Models and inputs on the device "meta": shapes without values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .known_values import batch_on_meta


class _NoRandomValues(TorchFunctionMode):
    """Skips filling tensors with random numbers, which takes most of the time in which a model is built."""

    _SKIPPED = frozenset(
        ("normal_", "uniform_", "trunc_normal_", "kaiming_normal_", "kaiming_uniform_", "xavier_normal_", "xavier_uniform_")
    )

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__name__", "") in self._SKIPPED and args and isinstance(args[0], torch.Tensor):
            return args[0]
        return function(*args, **(kwargs or {}))


def tensor_to_meta(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor of the same shape, strides and dtype without values; a parameter stays one."""
    if tensor.is_meta and not isinstance(tensor, torch.nn.Parameter):
        return tensor
    data = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(data, requires_grad=tensor.requires_grad)
    return data.requires_grad_(tensor.requires_grad)


def model_to_meta(model: torch.nn.Module) -> torch.nn.Module:
    """Returns a copy of a model whose parameters and buffers have no values; the model itself is left as it is."""
    memo: dict[int, Any] = {}
    for tensor in (*model.parameters(), *model.buffers()):
        memo[id(tensor)] = tensor_to_meta(tensor)
    return copy.deepcopy(model, memo)


def build_model(model: torch.nn.Module | Callable[[], torch.nn.Module]) -> torch.nn.Module:
    """Returns the model on "meta", in training mode. A callable builds it there; where that fails, on the CPU without its random values."""
    if isinstance(model, torch.nn.Module):
        built = model_to_meta(model)
        return built if built.training else built.train()
    try:
        with torch.device("meta"):
            built = model()
    except (RuntimeError, NotImplementedError, ValueError, TypeError):
        with torch.device("cpu"), _NoRandomValues():
            built = model()
    if not isinstance(built, torch.nn.Module):
        raise TypeError(f"model() returned {type(built).__name__}: expected a torch.nn.Module")
    return model_to_meta(built).train()


def map_tensors(value: Any, function: Callable[[torch.Tensor], Any]) -> Any:
    """Returns a value of tuples, lists and dicts with `function` applied to each tensor in it."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict) or hasattr(value, "items"):
        return {key: map_tensors(item, function) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map_tensors(item, function) for item in value)
    return value


def with_batch(inputs: Any, batch: int, axis: int) -> Any:
    """Returns inputs for a batch, on "meta".

    `inputs` is a tensor, or tuples, lists and dicts of tensors and other values, or a callable of the batch that returns such. The
    first tensor tells the batch of the example; tensors that have the same size along `axis` get `batch` there.
    """
    if callable(inputs) and not isinstance(inputs, torch.Tensor):
        with torch.device("meta"):
            return map_tensors(inputs(batch), tensor_to_meta)
    sizes: list[int] = []
    map_tensors(inputs, lambda tensor: sizes.append(tensor.shape[axis]) if tensor.dim() > axis else None)
    if not sizes:
        raise ValueError("inputs hold no tensor with a batch dimension: expected example tensors, or a callable of the batch")

    def resized(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() <= axis or tensor.shape[axis] != sizes[0]:
            return tensor_to_meta(tensor)
        return batch_on_meta(tensor, batch, axis)

    return map_tensors(inputs, resized)
