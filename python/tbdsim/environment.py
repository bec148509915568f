"""A training script written for a GPU, run where there is none: the device "meta" stands for the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import torch

from .autocast import cuda_kernels
from .cuda_device import meta_is_cuda
from .cuda_module import one_gpu
from .cuda_operators import AS_ONE
from .errors import CaptureError
from .flex_attention import flex_attention_as_one
from .host_data import host_data
from .meta_kernels import meta_kernels
from .numbers_read import reads_answered
from .one_process import one_process
from .recorder import Recorder
from .replaced import replaced
from .triton_kernels import triton_kernels
from .uncompiled import uncompiled


def _autocast_on_cuda() -> Any:
    """Returns `autocast.__init__` for which "meta" means "cuda"."""
    original = torch.amp.autocast_mode.autocast.__init__

    def init(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        original(self, "cuda" if device_type == "meta" else device_type, *args, **kwargs)

    return init


def _for_cuda(query: Any) -> Any:
    """Returns a query of autocast's state for which "meta" means "cuda"."""

    def asked(*device: str) -> Any:
        return query(*("cuda" if name == "meta" else name for name in device))

    return asked


def _with_meta(devices: Any) -> Any:
    return lambda: [*devices(), "meta"]


@contextmanager
def _devices_of_saved_tensors() -> Iterator[None]:
    """Lets checkpointing compare the devices of what it saved with those of what it computes again, as they are on "meta"."""
    checks = import_module("torch.utils.checkpoint")._allowed_determinism_checks_to_fns
    default = checks["default"]

    def untold(tensor: torch.Tensor) -> Any:
        with torch._C.DisableTorchFunction():
            return default(tensor)

    checks["default"] = untold
    try:
        yield
    finally:
        checks["default"] = default


@contextmanager
def cuda_environment() -> Iterator[None]:
    """Lets code run as on a machine with a GPU until the block ends.

    Tensors on "cuda" are made on "meta", autocast and gradient scalers are not switched off for want of a GPU, operators are
    dispatched as a CUDA build does, and optimizers and clipping choose their multi-tensor forms as they do on a GPU.
    """
    if not hasattr(torch.library.Library, "fallback"):
        raise CaptureError(f"PyTorch {torch.__version__} is too old for captures: expected 2.6 or later")
    foreach, optimizers = import_module("torch.utils._foreach_utils"), import_module("torch.optim.optimizer")
    with ExitStack() as stack:
        stack.enter_context(replaced(import_module("torch.cuda.amp.common"), "amp_definitely_not_available", lambda: False))
        stack.enter_context(one_gpu())
        stack.enter_context(uncompiled())
        stack.enter_context(host_data())
        stack.enter_context(replaced(torch.amp.autocast_mode.autocast, "__init__", _autocast_on_cuda()))
        stack.enter_context(replaced(torch, "is_autocast_enabled", _for_cuda(torch.is_autocast_enabled)))
        stack.enter_context(replaced(torch, "get_autocast_dtype", _for_cuda(torch.get_autocast_dtype)))
        for name in ("_get_foreach_kernels_supported_devices", "_get_fused_kernels_supported_devices"):
            devices = _with_meta(getattr(foreach, name))
            stack.enter_context(replaced(foreach, name, devices))
            stack.enter_context(replaced(optimizers, name, devices))
        stack.callback(meta_kernels()._destroy)
        stack.enter_context(one_process())
        stack.enter_context(_devices_of_saved_tensors())
        stack.enter_context(cuda_kernels(AS_ONE))
        stack.enter_context(meta_is_cuda())
        yield


def _in_phase(recorder: Recorder, name: str, function: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        with recorder.phase(name):
            return function(*args, **kwargs)

    return run


def _closure(recorder: Recorder, function: Any) -> Any:
    """Returns a closure that an optimizer calls: a forward and a backward pass within the update."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with recorder.no_phase():
            return function(*args, **kwargs)

    return run


@contextmanager
def phases_marked(recorder: Recorder) -> Iterator[None]:
    """Tells the recorder of the backward pass, optimizers, gradient scalers, clipping and zeroing until the block ends."""
    scaler, optimizers = torch.amp.GradScaler, import_module("torch.optim.optimizer")
    with ExitStack() as stack:
        stack.enter_context(reads_answered(recorder))
        stack.enter_context(flex_attention_as_one(recorder.warnings.append))
        stack.enter_context(triton_kernels(recorder.launch))
        stack.enter_context(replaced(torch.cuda, "synchronize", lambda *_: recorder.synchronize()))
        for owner, name, phase in (
            (torch.autograd, "backward", "backward"),
            (torch.autograd, "grad", "backward"),
            (torch.optim.Optimizer, "zero_grad", "zero"),
            (torch.nn.Module, "zero_grad", "zero"),
            (scaler, "unscale_", "update"),
            (scaler, "update", "update"),
            (torch.nn.utils, "clip_grad_norm_", "update"),
            (torch.nn.utils, "clip_grad_value_", "update"),
        ):
            stack.enter_context(replaced(owner, name, _in_phase(recorder, phase, getattr(owner, name))))
        opened = ExitStack()  # holds what `before` opens until `after`

        def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> Any:
            recorder.optimizers[id(optimizer)] = optimizer
            opened.enter_context(recorder.phase("update"))
            closures = [_closure(recorder, value) if callable(value) else value for value in args]
            return closures, {name: _closure(recorder, value) if callable(value) else value for name, value in kwargs.items()}

        def after(*_: Any) -> None:
            opened.close()

        stack.callback(optimizers.register_optimizer_step_pre_hook(before).remove)
        stack.callback(optimizers.register_optimizer_step_post_hook(after).remove)
        yield
        opened.close()
