"""The device "meta" stands for a GPU, and programs are told that it is one: `tensor.device` is "cuda:0"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .errors import CaptureError
from .replaced import replaced

_CUDA = torch.device("cuda", 0)
_ATTENTION = torch.nn.functional.scaled_dot_product_attention

#: What a program is told of a tensor on "meta" by the attribute or method of that name.
_TOLD: dict[Any, Any] = {torch.Tensor.device: _CUDA, torch.Tensor.is_cuda: True}


def _as_meta(value: Any) -> Any:
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "meta"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("meta")
    return value


class CudaIsMeta(TorchFunctionMode):
    """Puts on the device "meta" what is asked for on "cuda", and calls that device "cuda" where a program asks a tensor.

    Code of this package asks `tensor.is_meta`, which tells the truth.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        told = _TOLD.get(getattr(function, "__self__", None)) if args else None
        if told is not None:
            return told if args[0].is_meta else function(*args, **kwargs)
        if function is torch.device:
            return function(*args, **kwargs)
        if function is torch.Tensor.get_device and args[0].is_meta:
            return _CUDA.index
        if function is torch.Tensor.pin_memory:
            return args[0]
        if function is _ATTENTION and args and args[0].is_nested:
            raise CaptureError(
                "scaled_dot_product_attention of nested tensors: their lengths are values, and a capture has none; pad the sequences"
            )
        kwargs = {name: _as_meta(value) for name, value in kwargs.items() if name != "pin_memory"}
        if function is torch.Tensor.cuda:
            return args[0].to("meta")
        if function in (torch.tensor, torch.as_tensor) and str(kwargs.get("device")) == "meta" and not isinstance(args[0], torch.Tensor):
            return _copied(function, args, kwargs)
        return function(*(_as_meta(value) for value in args), **kwargs)


def _copied(function: Any, args: Any, kwargs: dict[str, Any]) -> torch.Tensor:
    """Returns a tensor of Python's numbers, which is made on the host and copied to the GPU."""
    needs_gradient = kwargs.pop("requires_grad", False)
    made: torch.Tensor = function(*args, **{**kwargs, "device": "cpu"})
    on_gpu = made.to("meta") if made.numel() else torch.empty_like(made, device="meta")  # nothing is copied of an empty one
    return on_gpu.requires_grad_(needs_gradient)


def _in_mode(function: Callable[..., Any], mode: TorchFunctionMode) -> Callable[..., Any]:
    """Returns autograd's engine that runs functions of the program, such as one that computes a block again, in the mode: PyTorch
    leaves a mode where it calls `backward`."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return function(*args, **kwargs)

    return run


def _set_default_device(*_: Any) -> None:
    raise CaptureError("torch.set_default_device within a capture: call it before, or give tensors of the step their device")


class _HostGenerators(type):
    """Makes the host's random number generators, which stand for a GPU's, too."""

    made = torch.Generator

    def __call__(cls, device: Any = "cpu") -> Any:
        device = _as_meta(device) if isinstance(device, torch.device) else _as_meta(str(device))
        return cls.made("cpu" if str(device) == "meta" else device)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.made)


class _Generator(metaclass=_HostGenerators):
    """Stands for `torch.Generator`."""


@contextmanager
def meta_is_cuda() -> Iterator[None]:
    """Lets "cuda" be "meta" until the block ends."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)  # of `torch.set_default_device`
    default = None if context is None else context.device
    with ExitStack() as stack:
        if default is not None and default.type == "cuda":
            stack.callback(torch.set_default_device, default)
            torch.set_default_device("meta")
        stack.enter_context(replaced(torch, "set_default_device", _set_default_device))
        stack.enter_context(replaced(torch, "Generator", _Generator))
        mode = stack.enter_context(CudaIsMeta())
        engine = _in_mode(torch.autograd._engine_run_backward, mode)
        stack.enter_context(replaced(torch.autograd, "_engine_run_backward", engine))
        yield
