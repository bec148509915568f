"""Shapes of what operators make, worked out once for equal arguments.

PyTorch tells the shapes of many operators (batch normalization, activations) in Python, which takes most of the time of a capture; a
network calls most of its operators again and again with tensors of the same shapes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from .cuda_strides import as_cuda_lays_out


@cache
def _kind(operator: Any) -> str:
    """Returns "new" for an operator that makes new tensors of its arguments, "in_place" for one that changes its first and returns
    it, "" for others: views, out variants, lists of tensors, tensors made of no tensor."""
    schema = operator._schema
    aliased = [argument for argument in schema.arguments if argument.alias_info is not None]
    results = schema.returns
    if torch.Tag.inplace_view in operator.tags or not schema.arguments or str(schema.arguments[0].type) != "Tensor":
        return ""
    if not aliased and results and all(str(result.type) == "Tensor" and result.alias_info is None for result in results):
        return "new"
    first = schema.arguments[0].alias_info
    if len(aliased) == 1 and first is not None and first.is_write and len(results) == 1 and schema.name.endswith("_"):
        return "in_place"
    return ""


class _Uncached(Exception):
    pass


def _key(value: Any) -> Any:
    """Returns what of an argument decides about shapes, strides and dtypes, as a key."""
    if isinstance(value, torch.Tensor):
        if not value.is_meta or value.layout != torch.strided or value.is_conj() or value.is_neg():
            raise _Uncached
        return (value.shape, value.stride(), value.dtype)
    if isinstance(value, (list, tuple)):
        return tuple(_key(item) for item in value)
    return (value.__class__, value)


def _reads_meta(args: Any) -> bool:
    return any(isinstance(value, torch.Tensor) and value.is_meta for value in args)


def _number_on_meta(value: Any) -> Any:
    """Returns a number that is a tensor of the host as one on "meta": CUDA's kernels take both, some of meta's only the latter."""
    if isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.dim() == 0:
        return torch.empty((), dtype=value.dtype, device="meta")
    return value


def _template(tensor: Any) -> Any:
    return None if tensor is None else (tuple(tensor.shape), tensor.stride(), tensor.dtype)


def _made(template: Any) -> torch.Tensor | None:
    if template is None:
        return None
    shape, strides, dtype = template
    return torch.empty_strided(shape, strides, dtype=dtype, device="meta")


def _storages(values: Any) -> set[int]:
    return {value.untyped_storage()._cdata for value in values if isinstance(value, torch.Tensor)}


class Shapes:
    """Runs operators on "meta"; what they make has the strides of CUDA's kernels."""

    def __init__(self) -> None:
        self._templates: dict[Any, Any] = {}

    def run(self, operator: Any, args: Any, kwargs: Any) -> Any:
        kind = _kind(operator)
        if not kind or not isinstance(args[0], torch.Tensor):  # `torch.div(8, 2)` makes a tensor of the host
            return operator(*args, **kwargs)
        try:
            key = (operator, _key(args), tuple((name, _key(value)) for name, value in kwargs.items()))
            known = key in self._templates
        except (_Uncached, TypeError):  # a tensor of the host; a value that is no key
            on_meta = [_number_on_meta(value) for value in args] if _reads_meta(args) else args
            return as_cuda_lays_out(operator, args, operator(*on_meta, **kwargs))
        if known:
            if kind == "in_place":
                return args[0]
            template = self._templates[key]
            return tuple(map(_made, template)) if isinstance(template, list) else _made(template)
        result = as_cuda_lays_out(operator, args, operator(*args, **kwargs))
        results = result if isinstance(result, tuple) else (result,)
        if kind == "in_place" or not _storages(results) & _storages(
            (*args, *kwargs.values())
        ):  # `_unsafe_view` is an undeclared view
            self._templates[key] = [_template(item) for item in results] if isinstance(result, tuple) else _template(result)
        return result
