#!/usr/bin/env python3
"""Times single operators of PyTorch on the NVIDIA GPU at hand: attention, norms, activations, losses, optimizers.

    operators.py -o operators.csv [--seconds 60]

A row has the median of 15 calls between CUDA events, in microseconds; the L2 cache is overwritten before each call.
Attention runs by each backend of scaled_dot_product_attention that takes its sizes. Ends with 77 without PyTorch or a GPU.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

COLUMNS = "what backend phase batch heads kv length dim causal dtype time_us spread".split()
#: batch, heads, heads of keys and values, tokens, features of a head
ATTENTION = [
    (4, 32, 32, 2048, 128),
    (1, 32, 8, 8192, 128),
    (2, 16, 16, 4096, 64),
    (16, 12, 12, 512, 64),
    (32, 16, 16, 384, 64),
    (8, 16, 16, 1024, 64),
    (1, 64, 8, 4096, 128),
    (64, 12, 12, 197, 64),
    (2, 32, 32, 4096, 96),
    (1, 16, 16, 16384, 128),
    (8, 8, 8, 2048, 256),
]
ROWS = [(8192, 1024), (8192, 4096), (16384, 2048), (4096, 8192), (32768, 768)]  # rows and columns
LOGITS = [(4096, 32000), (8192, 50257), (8192, 128256)]  # tokens and vocabulary
MATRIX = 4096  # rows and columns of each of the optimizers' twelve matrices

Row = dict[str, Any]


class Timer:
    """Times calls on the GPU; `scratch` is larger than its L2 cache."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.scratch = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def __call__(self, call: Callable[[], object], calls: int = 15) -> Row:
        """The median time in microseconds, and the range of the middle half of the calls over it."""
        cuda = self.torch.cuda
        for _ in range(3):
            call()
        cuda.synchronize()
        events = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(calls)]
        for i, (start, end) in enumerate(events):
            self.scratch.fill_(i)
            cuda._sleep(400_000)  # cycles: the host is ahead when the call begins
            start.record()
            call()
            end.record()
        cuda.synchronize()
        times = sorted(1e3 * start.elapsed_time(end) for start, end in events)
        middle = times[calls // 2]
        return {"time_us": middle, "spread": (times[3 * calls // 4] - times[calls // 4]) / middle}


def both_passes(torch: Any, timer: Timer, forward: Callable[[], Any], inputs: list[Any], row: Row) -> Iterator[Row]:
    """The forward and the backward pass of one operator."""
    yield row | {"phase": "fwd"} | timer(forward)
    output = forward()
    gradient = torch.randn_like(output)
    yield row | {"phase": "bwd"} | timer(lambda: torch.autograd.grad(output, inputs, gradient, retain_graph=True))


def attention(torch: Any, timer: Timer) -> Iterator[Row]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
    }
    for batch, heads, kv, length, dim in ATTENTION:
        for causal in (True, False):
            for name, backend in backends.items():
                q = torch.randn(batch, heads, length, dim, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                k = torch.randn(batch, kv, length, dim, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                v = torch.randn_like(k, requires_grad=True)

                def forward(q: Any = q, k: Any = k, v: Any = v, causal: bool = causal, grouped: bool = kv != heads) -> Any:
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)

                row = {"what": "attention", "backend": name, "batch": batch, "heads": heads, "kv": kv, "length": length, "dim": dim}
                row |= {"causal": int(causal), "dtype": "bf16"}
                try:
                    with sdpa_kernel(backend):
                        yield from both_passes(torch, timer, forward, [q, k, v], row)
                except RuntimeError as error:
                    print(f"{name} {row}: {str(error)[:100]}", file=sys.stderr)


def rows_of_numbers(torch: Any, timer: Timer) -> Iterator[Row]:
    functional = torch.nn.functional
    for rows, columns in ROWS:
        for dtype, name in ((torch.bfloat16, "bf16"), (torch.float32, "fp32")):
            x = torch.randn(rows, columns, device="cuda", dtype=dtype, requires_grad=True)
            scale = torch.ones(columns, device="cuda", dtype=dtype, requires_grad=True)
            shift = torch.zeros(columns, device="cuda", dtype=dtype, requires_grad=True)
            operators: dict[str, tuple[Callable[[], Any], list[Any]]] = {
                "layer_norm": (lambda x=x, n=columns, w=scale, b=shift: functional.layer_norm(x, (n,), w, b), [x, scale, shift]),
                "rms_norm": (lambda x=x, n=columns, w=scale: functional.rms_norm(x, (n,), w), [x, scale]),
                "gelu": (lambda x=x: functional.gelu(x), [x]),
                "softmax": (lambda x=x: functional.softmax(x, -1), [x]),
                "silu": (lambda x=x: functional.silu(x), [x]),
            }
            for what, (forward, inputs) in operators.items():
                yield from both_passes(torch, timer, forward, inputs, {"what": what, "batch": rows, "length": columns, "dtype": name})


def losses(torch: Any, timer: Timer) -> Iterator[Row]:
    for tokens, words in LOGITS:
        for dtype, name in ((torch.bfloat16, "bf16"), (torch.float32, "fp32")):
            x = torch.randn(tokens, words, device="cuda", dtype=dtype, requires_grad=True)
            target = torch.randint(words, (tokens,), device="cuda")
            row = {"what": "cross_entropy", "batch": tokens, "length": words, "dtype": name}
            yield from both_passes(torch, timer, lambda x=x, t=target: torch.nn.functional.cross_entropy(x, t), [x], row)


def optimizers(torch: Any, timer: Timer) -> Iterator[Row]:
    for form in ("fused", "foreach"):
        for name in ("AdamW", "SGD", "Adam"):
            shapes = [(MATRIX, MATRIX)] * 12 + [(MATRIX,)] * 60
            parameters = [torch.randn(*shape, device="cuda", requires_grad=True) for shape in shapes]
            for parameter in parameters:
                parameter.grad = torch.randn_like(parameter)
            options = {form: True, "lr": 1e-4} | ({"momentum": 0.9} if name == "SGD" else {})
            step = getattr(torch.optim, name)(parameters, **options).step
            row = {"what": "optimizer", "backend": f"{name}_{form}", "phase": "update", "batch": 12, "length": MATRIX**2, "dtype": "fp32"}
            yield row | timer(step, 9)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", required=True, help="the CSV to write")
    parser.add_argument("--seconds", type=float, default=60, help="no operator is begun after so many (default 60)")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("operators.py: no PyTorch", file=sys.stderr)
        return 77
    if not torch.cuda.is_available():
        print("operators.py: no NVIDIA GPU", file=sys.stderr)
        return 77
    timer = Timer(torch)
    began = time.monotonic()
    with open(options.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for group in (attention, rows_of_numbers, losses, optimizers):
            for row in group(torch, timer):
                writer.writerow(row)
                file.flush()
                if time.monotonic() - began > options.seconds:
                    return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
