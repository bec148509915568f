"""What fp32, tf32 and bf16 mean here, and which number types the layers really put out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from errors import CannotRun

AMPERE = (8, 0)


def apply(precision: str, device: torch.device) -> None:
    """fp32: TF32 off everywhere. tf32: on in products, convolutions, RNNs. bf16: autocast, the rest as in fp32."""
    if precision != "fp32" and device.type == "cuda" and torch.cuda.get_device_capability(device) < AMPERE:
        raise CannotRun(f"{precision} needs compute capability 8.0 or later")
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def observed_types(modules: Sequence[nn.Module], run: Callable[[], object]) -> dict[str, list[str]]:
    """Runs once and tells for every layer type the number types of its outputs: autocast has its own mind (it may
    run cuDNN's RNNs in float16 where bfloat16 was asked for)."""
    seen: dict[str, set[str]] = {}

    def note(module: nn.Module, _inputs: object, output: object) -> None:
        first = output[0] if isinstance(output, tuple) else output
        if isinstance(first, torch.Tensor):
            seen.setdefault(type(module).__name__, set()).add(str(first.dtype).removeprefix("torch."))

    leaves = [m for module in modules for m in module.modules() if not list(m.children())]
    handles = [leaf.register_forward_hook(note) for leaf in leaves]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return {layer: sorted(types) for layer, types in sorted(seen.items())}
