#!/usr/bin/env python3
"""Times single operators of PyTorch on the NVIDIA GPU at hand: recurrent layers, products, embeddings, norms, attention, ...

    operators.py -o operators.csv [--seconds 60] [--only GROUP]

A row has the median of 15 calls between CUDA events, in microseconds; the L2 cache is overwritten before each call.
Attention runs by each backend of scaled_dot_product_attention that takes its sizes. Rows of `sustained` run one product for half a second
and have the SM clock and the board's power. Ends with 77 without PyTorch or a GPU.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

COLUMNS = "what backend phase batch heads kv length dim causal dtype time_us spread clock_mhz power_w".split()
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
#: layer, features of the input and the state, tokens
RECURRENT = [("lstm", 512, 25), ("lstm", 1024, 50), ("gru", 1760, 50)]
SEQUENCES = [1, 2, 4, 8, 12, 15, 16, 17, 20, 24, 25, 28, 32, 33, 40, 48, 64, 65, 96, 128, 256]
#: outputs and inputs of a linear layer, and its tokens
LINEAR = [
    (768, 768), (3072, 768), (768, 3072), (50257, 768), (50304, 768), (1024, 1024), (4096, 1024), (1024, 4096), (30522, 1024),
    (2048, 2048), (8192, 2048), (2048, 8192), (4096, 4096), (6144, 4096), (14336, 4096), (4096, 14336), (8192, 8192), (28672, 8192), (8192, 28672),
]  # fmt: skip
TOKENS = [512, 2048, 4096, 8192, 16384]
#: words, features, and rows looked up
TABLES = [(138493, 64, 1 << 20), (26744, 64, 1 << 20), (138493, 128, 1 << 20), (30522, 1024, 8192), (50257, 768, 16384), (128256, 2048, 8192)]
#: images, channels, pixels of a side
IMAGES = [
    (128, 64, 112), (128, 64, 56), (128, 256, 56), (128, 128, 28), (128, 512, 28), (128, 1024, 14), (128, 2048, 7),
    (32, 64, 112), (32, 256, 56), (32, 512, 28), (32, 1024, 14), (32, 2048, 7), (128, 96, 112), (128, 144, 56), (128, 672, 14),
]  # fmt: skip
#: the same with 32 groups, of a diffusion model's U-Net
GROUPED = [(16, 320, 64), (16, 640, 32), (16, 1280, 16), (16, 1280, 8), (4, 256, 128)]
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


def both_passes(torch: Any, timer: Timer, forward: Callable[[], Any], inputs: list[Any], row: Row, calls: int = 15) -> Iterator[Row]:
    """The forward and the backward pass of one operator."""
    yield row | {"phase": "fwd"} | timer(forward, calls)
    output = forward()
    gradient = torch.randn_like(output)
    yield row | {"phase": "bwd"} | timer(lambda: torch.autograd.grad(output, inputs, gradient, retain_graph=True), calls)


def set_tf32(torch: Any, on: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def precisions(torch: Any) -> Iterator[tuple[str, Any]]:
    """The names and types of the precisions, with TF32 set for each."""
    for name, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16), ("tf32", torch.float32), ("fp32", torch.float32)):
        set_tf32(torch, name == "tf32")
        yield name, dtype
    set_tf32(torch, False)


def recurrent(torch: Any, timer: Timer) -> Iterator[Row]:
    """cuDNN's recurrent layers by the number of sequences."""
    for name, dtype in precisions(torch):
        if name == "bf16":
            continue
        for what, features, length in RECURRENT:
            layer = getattr(torch.nn, what.upper())(features, features, device="cuda", dtype=dtype)
            inputs = list(layer.parameters())
            for batch in SEQUENCES:
                x = torch.randn(length, batch, features, device="cuda", dtype=dtype, requires_grad=True)
                row = {"what": what, "backend": "cudnn", "batch": batch, "length": length, "dim": features, "dtype": name}
                yield from both_passes(torch, timer, lambda x=x, layer=layer: layer(x)[0], [x, *inputs], row, 7)


def products(torch: Any, timer: Timer) -> Iterator[Row]:
    """The three products of linear layers: forward (TN), gradient of the input (NN) and of the weights (NT); fp8 forward."""
    for name, dtype in precisions(torch):
        for out, features in LINEAR:
            for tokens in TOKENS:
                if 2.0 * out * features * tokens > (2e11 if name == "fp32" else 8e12):
                    continue
                x = torch.randn(tokens, features, device="cuda", dtype=dtype)
                w = torch.randn(out, features, device="cuda", dtype=dtype)
                y = torch.randn(tokens, out, device="cuda", dtype=dtype)
                row = {"what": "linear", "batch": tokens, "length": out, "dim": features, "dtype": name}
                yield row | {"phase": "fwd"} | timer(lambda x=x, w=w: x @ w.t(), 7)
                yield row | {"phase": "dgrad"} | timer(lambda y=y, w=w: y @ w, 7)
                yield row | {"phase": "wgrad"} | timer(lambda y=y, x=x: y.t() @ x, 7)
    for out, features in LINEAR:
        for tokens in TOKENS:
            if out % 16 == 0:
                yield from fp8_products(torch, timer, out, features, tokens)


def fp8_products(torch: Any, timer: Timer, out: int, features: int, tokens: int) -> Iterator[Row]:
    """fp8 products with one scale a tensor or one a row, and the casts of a tensor from bf16 and its transpose."""
    wide = torch.randn(tokens, features, device="cuda", dtype=torch.bfloat16)
    x = wide.to(torch.float8_e4m3fn)
    w = torch.randn(out, features, device="cuda", dtype=torch.bfloat16).to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    rows, columns = torch.ones(tokens, 1, device="cuda"), torch.ones(1, out, device="cuda")
    row = {"what": "linear", "phase": "fwd", "batch": tokens, "length": out, "dim": features, "dtype": "fp8"}
    for backend, a, b, fast in (("tensorwise", one, one, True), ("tensorwise_accurate", one, one, False), ("rowwise", rows, columns, True)):
        try:
            yield row | {"backend": backend} | timer(
                lambda a=a, b=b, fast=fast: torch._scaled_mm(x, w, a, b, out_dtype=torch.bfloat16, use_fast_accum=fast), 7
            )
        except RuntimeError as error:
            print(f"{backend} {row}: {str(error)[:100]}", file=sys.stderr)
    if out == features:
        yield row | {"what": "cast", "phase": "cast"} | timer(lambda: wide.to(torch.float8_e4m3fn), 7)
        yield row | {"what": "cast", "phase": "amax"} | timer(lambda: wide.abs().amax(), 7)
        yield row | {"what": "cast", "phase": "transpose"} | timer(lambda: x.t().contiguous(), 7)


def embeddings(torch: Any, timer: Timer) -> Iterator[Row]:
    for words, features, looked_up in TABLES:
        for dtype, name in ((torch.float32, "fp32"), (torch.bfloat16, "bf16")):
            table = torch.randn(words, features, device="cuda", dtype=dtype, requires_grad=True)
            index = torch.randint(words, (looked_up,), device="cuda")
            row = {"what": "embedding", "batch": looked_up, "length": words, "dim": features, "dtype": name}
            yield from both_passes(torch, timer, lambda t=table, i=index: torch.nn.functional.embedding(i, t), [table], row)


def image_norms(torch: Any, timer: Timer) -> Iterator[Row]:
    """Batch and group norms of images by layout and type, as autocast calls them: the scales of batch norms stay fp32."""
    functional = torch.nn.functional
    for layout, order in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
        for dtype, name in ((torch.bfloat16, "bf16"), (torch.float16, "fp16"), (torch.float32, "fp32")):
            for groups, shapes in ((0, IMAGES), (32, GROUPED)):
                for images, channels, side in shapes:
                    x = torch.randn(images, channels, side, side, device="cuda", dtype=dtype).contiguous(memory_format=order)
                    x.requires_grad_()
                    scale = torch.ones(channels, device="cuda", dtype=dtype if groups else torch.float32, requires_grad=True)
                    shift = torch.zeros_like(scale, requires_grad=True)
                    mean, variance = torch.zeros(channels, device="cuda"), torch.ones(channels, device="cuda")

                    def norm(x: Any = x, w: Any = scale, b: Any = shift, m: Any = mean, v: Any = variance, groups: int = groups) -> Any:
                        return functional.group_norm(x, groups, w, b) if groups else functional.batch_norm(x, m, v, w, b, True)

                    row = {"what": "group_norm" if groups else "batch_norm", "backend": layout, "batch": images, "length": side * side}
                    yield from both_passes(torch, timer, norm, [x, scale, shift], row | {"dim": channels, "dtype": name}, 7)


def sustained(torch: Any, timer: Timer) -> Iterator[Row]:
    """One product again and again for half a second, whose power slows the clock; and a copy."""
    for name, dtype in precisions(torch):
        for side in (1024, 2048, 4096, 8192, 16384):
            if name == "fp32" and side > 8192:
                continue
            a, b = (torch.randn(side, side, device="cuda", dtype=dtype) for _ in range(2))
            out = torch.empty(side, side, device="cuda", dtype=dtype)
            row = {"what": "sustained", "backend": "product", "phase": "fwd", "length": side, "dtype": name}
            yield row | held(torch, lambda a=a, b=b, out=out: torch.mm(a, b, out=out))
    x = torch.randn(1 << 28, device="cuda")
    y = torch.empty_like(x)
    yield {"what": "sustained", "backend": "copy", "phase": "fwd", "length": 1 << 28, "dtype": "fp32"} | held(torch, lambda: y.copy_(x))


def held(torch: Any, call: Callable[[], object]) -> Row:
    """The mean time of a call in microseconds over half a second, the SM clock and the board's power at its end."""
    call()
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(5):
        call()
    end.record()
    end.synchronize()
    calls = max(10, int(500 * 5 / start.elapsed_time(end)))
    start.record()
    for i in range(calls):
        call()
        if i == calls * 9 // 10:
            end.record()
            end.synchronize()
            board = {"clock_mhz": torch.cuda.clock_rate(), "power_w": torch.cuda.power_draw() / 1000}
    return board | {"time_us": 1e3 * start.elapsed_time(end) / (calls * 9 // 10 + 1)}


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


GROUPS = {
    "sustained": sustained,
    "recurrent": recurrent,
    "image_norms": image_norms,
    "embeddings": embeddings,
    "products": products,
    "attention": attention,
    "rows": rows_of_numbers,
    "losses": losses,
    "optimizers": optimizers,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", required=True, help="the CSV to write")
    parser.add_argument("--seconds", type=float, default=60, help="no operator is begun after so many (default 60)")
    parser.add_argument("--only", action="append", choices=GROUPS, help="only this group (repeatable)")
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
        for name, group in GROUPS.items():
            if options.only and name not in options.only:
                continue
            for row in group(torch, timer):
                writer.writerow(row)
                file.flush()
                if time.monotonic() - began > options.seconds:
                    return 0
            print(f"{time.monotonic() - began:6.1f} s  {name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
