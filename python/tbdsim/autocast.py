"""Autocast as CUDA's kernels do it, for tensors of the device "meta".

`torch.autocast` casts in kernels of the dispatch key AutocastCUDA, and only tensors of a CUDA device. Here the same kernels stand
at the key of another device that nothing else uses: the dispatcher calls them where it would call CUDA's, also for operators that
other operators call and for those of the backward pass. Whether autocast is on, and in which dtype, is read from PyTorch's own
state, so that `torch.autocast("cuda", ...)`, nested regions and decorators work as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from . import autocast_lists as lists
from .replaced import replaced

#: The dispatch key that stands in for AutocastCUDA.
KEY = "AutocastHPU"

Kernel = Callable[..., Any]


def _key() -> Any:
    return torch._C._parse_dispatch_key(KEY)


class WeightCasts:
    """Casts of weights, kept until the outermost autocast region ends: PyTorch's cache."""

    def __init__(self) -> None:
        self._casts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def clear(self) -> None:
        self._casts.clear()

    def cast(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Returns `tensor` in `dtype`. Tensors that autocast does not touch (integers, fp64, the host's) are returned as they are."""
        if not tensor.is_meta or not tensor.is_floating_point() or tensor.dtype in (torch.float64, dtype):
            return tensor
        keep = (
            dtype == torch.get_autocast_dtype("cuda")
            and tensor.dtype == torch.float32
            and tensor.requires_grad
            and tensor.is_leaf
            and not tensor._is_view()
            and torch.is_autocast_cache_enabled()
        )
        if not keep:
            return tensor.to(dtype)
        if id(tensor) not in self._casts:
            self._casts[id(tensor)] = (tensor, tensor.to(dtype))
        return self._casts[id(tensor)][1]

    def cast_all(self, values: Any, dtype: torch.dtype) -> Any:
        return tree_map_only(torch.Tensor, lambda tensor: self.cast(tensor, dtype), values)


def overload(name: str) -> Any | None:
    """Returns the operator of that name ("softmax.int", "linear"); None where this PyTorch has none."""
    packet, _, which = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), which or "default", None)


def _is_eligible(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64


def _argument_names(operator: Any) -> list[str]:
    return [argument.name for argument in operator._schema.arguments]


# What follows makes, of an operator and of what runs it, what runs it in an autocast region.


def _lower_precision(_: Any, run: Kernel, casts: WeightCasts) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = casts.cast_all((args, kwargs), torch.get_autocast_dtype("cuda"))
        return run(*args, **kwargs)

    return kernel


def _fp32(_: Any, run: Kernel, casts: WeightCasts) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = casts.cast_all((args, kwargs), torch.float32)
        return run(*args, **kwargs)

    return kernel


def _fp32_output(operator: Any, run: Kernel, _: WeightCasts) -> Kernel:
    names = _argument_names(operator)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(names, args)), **kwargs}
        if given.get("dtype") is None and _is_eligible(args[0]):
            place = names.index("dtype")
            later = dict(zip(names[place + 1 :], args[place + 1 :]))
            return run(*args[:place], **{**kwargs, **later, "dtype": torch.float32})
        return run(*args, **kwargs)

    return kernel


def _widest(_: Any, run: Kernel, casts: WeightCasts) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        dtypes: list[torch.dtype] = []
        tree_map_only(torch.Tensor, lambda tensor: dtypes.append(tensor.dtype), (args, kwargs))
        dtype = torch.float32 if torch.float32 in dtypes else torch.get_autocast_dtype("cuda")
        args, kwargs = casts.cast_all((args, kwargs), dtype)
        return run(*args, **kwargs)

    return kernel


def _refused(operator: Any, _: Kernel, __: WeightCasts) -> Kernel:
    def kernel(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{operator} is unsafe to autocast, and an error on CUDA; use binary_cross_entropy_with_logits")

    return kernel


def _norm_with_dtype(operator: Any, with_dtype: Any) -> Kernel:
    names = _argument_names(operator)
    defaults = {a.name: a.default_value for a in operator._schema.arguments if a.has_default_value()}

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if not _is_eligible(args[0]):
            return operator(*args, **kwargs)
        given = {**defaults, **dict(zip(names, args)), **kwargs}
        return with_dtype(*(given[name] for name in names), dtype=torch.float32)

    return kernel


_POLICIES = (
    (lists.LOWER_PRECISION, _lower_precision),
    (lists.FP32, _fp32),
    (lists.FP32_OUTPUT, _fp32_output),
    (lists.WIDEST, _widest),
    (lists.REFUSED, _refused),
)


def _in_region(as_one: dict[str, Kernel], casts: WeightCasts) -> dict[str, Kernel]:
    """Returns what runs in an autocast region, by operator; operators that this PyTorch does not have are left out."""
    kernels: dict[str, Kernel] = {}
    for names, make in _POLICIES:
        for name in names:
            if (operator := overload(name)) is not None:
                kernels[name] = make(operator, as_one.get(name, operator), casts)
    for name, other in lists.NORM_WITH_DTYPE:
        operator, with_dtype = overload(name), overload(other)
        if operator is not None and with_dtype is not None:
            kernels[name] = _norm_with_dtype(operator, with_dtype)
    return kernels


def _at_key(in_region: Kernel, outside: Kernel) -> Kernel:
    """Returns the kernel for the dispatch key: one of the two, by whether autocast is on; neither comes back to this key."""
    keys = torch._C.DispatchKeySet(_key())

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return (in_region if torch.is_autocast_enabled("cuda") else outside)(*args, **kwargs)

    return kernel


@contextmanager
def cuda_kernels(as_one: dict[str, Kernel]) -> Iterator[None]:
    """Dispatches as a CUDA build does until the block ends: with autocast's casts, and with operators that run as one.

    `as_one` (see `cuda_operators.py`) replaces operators, by name; inside an autocast region their arguments are cast first.
    """
    key = _key()
    casts = WeightCasts()
    in_region = _in_region(as_one, casts)
    excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(key)
    with ExitStack() as stack:
        every, aten = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
        stack.callback(every._destroy)
        stack.callback(aten._destroy)
        every.fallback(torch.library.fallthrough_kernel, KEY)
        for name in {**in_region, **as_one}:
            outside = as_one.get(name, overload(name))
            aten.impl(name, _at_key(in_region.get(name, outside), outside), KEY)
        stack.enter_context(replaced(torch, "clear_autocast_cache", casts.clear))
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
        stack.callback(torch._C._dispatch_tls_set_dispatch_key_excluded, key, excluded)
        stack.enter_context(torch._C._IncludeDispatchKeyGuard(key))
        yield
