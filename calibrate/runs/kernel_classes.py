"""What a GPU kernel of a training step does, by classes that a measured kernel and a predicted one can both be put into."""

from __future__ import annotations

import json
import re

Row = dict[str, str]

#: kernels of cuDNN that change a layout or a type beside a convolution
_LAYOUT = re.compile(r"nchwToNhwc|nhwcToNchw|convertTensor|AddPadding|transpose", re.IGNORECASE)
_BY_WEIGHTS = re.compile(r"wgrad|grad_weight|splitK|reduce", re.IGNORECASE)

#: classes by parts of PyTorch's names of operators, the first that is met
_OPERATORS = (
    ("batch_norm", "batch norm"),
    ("attention", "attention"),
    ("layer_norm", "layer and group norm"),
    ("group_norm", "layer and group norm"),
    ("rms_norm", "layer and group norm"),
    ("pool", "pooling"),
    ("foreach", "update"),
    ("fused_", "update"),
    ("_amp_foreach", "update"),
    ("_amp_update", "update"),
    ("softmax", "softmax and loss"),
    ("nll_loss", "softmax and loss"),
    ("embedding", "embedding"),
    ("copy_", "copy and cast"),
    ("aten::sum", "reduction"),
    ("aten::mean", "reduction"),
    ("fill_", "fill"),
    ("aten::cat", "concatenation"),
)
_PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear"}
_KINDS = {
    "batch_norm": "batch norm",
    "layer_norm": "layer and group norm",
    "group_norm": "layer and group norm",
    "pooling": "pooling",
    "softmax": "softmax and loss",
    "reduction": "reduction",
    "gemm": "product",
    "batched_gemm": "product",
    "transpose": "convolution, layout",
}
_KERNELS = {
    "batch_norm": "batch norm",
    "cast": "copy and cast",
    "copy": "copy and cast",
    "contiguous": "copy and cast",
    "clone": "copy and cast",
    "transpose": "copy and cast",
    **dict.fromkeys(("cat", "stack"), "concatenation"),
    **dict.fromkeys(("fill", "zeros", "new_zeros", "ones_like", "zeros_like", "full"), "fill"),
}


def _grouping(groups: int, channels: int) -> str:
    return "dense" if groups == 1 else "depthwise" if groups == channels else "grouped"


def measured_class(row: Row) -> str:
    """The class of a row of step_kernels.csv.gz."""
    operator, shapes = row["operator"], json.loads(row["shapes"] or "[]")
    if "conv" in operator:
        if _LAYOUT.search(row["kernel"]):
            return "convolution, layout"
        backward = "backward" in operator
        images, weights = shapes[1:3] if backward else shapes[0:2]
        by_weights = backward and _BY_WEIGHTS.search(row["kernel"])
        return f"convolution, {_grouping(images[1] // weights[1], images[1])}, " + (
            "weight gradient" if by_weights else "input gradient" if backward else "forward"
        )
    if operator in _PRODUCTS:
        return "product"
    if not operator:
        return "fill"
    return next((name for part, name in _OPERATORS if part in operator), "element-wise")


def predicted_class(row: Row) -> str:
    """The class of a row of `tbd-sim kernels --format csv`."""
    kernel, kind, phase = row["kernel"], row["kind"], row["phase"]
    passes = {"forward": "forward", "backward_data": "input gradient", "backward_weights": "weight gradient"}
    if kind == "convolution" or kernel == "conv_1x1":
        shape = re.match(r"\d+x(\d+)x\S+ \S+ g(\d+)", row["shape"])
        channels, groups = (int(number) for number in shape.groups()) if shape else (0, 1)
        return f"convolution, {_grouping(groups, channels)}, {passes[phase]}"
    if "attention" in kernel or "attention" in kind:
        return "attention"
    if phase == "update" or kind == "update":
        return "update"
    if "nll_loss" in kernel:
        return "softmax and loss"
    if "embedding" in kernel:
        return "embedding"
    return _KERNELS.get(kernel) or _KINDS.get(kind, "element-wise")
