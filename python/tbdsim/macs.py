"""Multiply-adds of an operator, as `tbd-sim show` counts them: convolutions and matrix products, those in
recurrent layers and attention among them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from .step import Operator, Step, TensorArgument, size_at


def _shape(step: Step, operator: Operator, argument: int, batch: int) -> list[int]:
    """Returns the shape of the tensor that is the argument of that number."""
    value = operator.arguments[argument]
    if not isinstance(value, TensorArgument):
        raise ValueError(f"{operator.name}: argument {argument} is no tensor")
    return [size_at(size, batch) for size in step.tensors[value.index].shape]


def _output(step: Step, operator: Operator, batch: int) -> list[int]:
    return [size_at(size, batch) for size in step.tensors[operator.outputs[0]].shape]


def _convolution_of(input: list[int], weight: list[int], output: list[int], transposed: bool) -> int:
    """Returns elements of the result times those that each is a sum over; of a transposed convolution, the other way round."""
    return prod(input if transposed else output) * prod(weight[1:])


def _convolution(step: Step, operator: Operator, batch: int) -> int:
    input, weight = (_shape(step, operator, argument, batch) for argument in (0, 1))
    return _convolution_of(input, weight, _output(step, operator, batch), bool(operator.arguments[6]))


def _convolution_backward(step: Step, operator: Operator, batch: int) -> int:
    output, input, weight = (_shape(step, operator, argument, batch) for argument in (0, 1, 2))
    mask = operator.arguments[10]
    return (mask[0] + mask[1]) * _convolution_of(input, weight, output, bool(operator.arguments[7]))


def _product(left: int) -> Callable[[Step, Operator, int], int]:
    """Returns the count of a matrix product whose left factor is the argument of that number; a complex one is four."""

    def count(step: Step, operator: Operator, batch: int) -> int:
        each = 4 if step.tensors[operator.outputs[0]].dtype in ("c64", "c128") else 1
        return each * prod(_output(step, operator, batch)) * _shape(step, operator, left, batch)[-1]

    return count


def _attention(query: int, times: int) -> Callable[[Step, Operator, int], int]:
    """Returns the count of attention whose query is the argument of that number, key and value behind it: query x key, weights x value."""

    def count(step: Step, operator: Operator, batch: int) -> int:
        q, k, v = (_shape(step, operator, query + i, batch) for i in range(3))
        return times * prod(q[:-1]) * k[-2] * (q[-1] + v[-1])

    return count


def _recurrent(times: int) -> Callable[[Step, Operator, int], int]:
    """Returns the count of a recurrent layer: every matrix of weights times every step of every sample."""

    def count(step: Step, operator: Operator, batch: int) -> int:
        shapes = [[size_at(size, batch) for size in step.tensors[weight.index].shape] for weight in operator.arguments[1]]
        return times * sum(prod(shape) for shape in shapes if len(shape) == 2) * prod(_shape(step, operator, 0, batch)[:-1])

    return count


_COUNTS: dict[str, Callable[[Step, Operator, int], int]] = {
    "aten.convolution.default": _convolution,
    "aten.convolution_backward.default": _convolution_backward,
    "aten.mm.default": _product(0),
    "aten.bmm.default": _product(0),
    "aten.addmm.default": _product(1),
    "aten.baddbmm.default": _product(1),
    "aten._cudnn_rnn.default": _recurrent(1),
    "aten._cudnn_rnn_backward.default": _recurrent(2),
    "tbdsim.scaled_dot_product_attention": _attention(0, 1),
    # gradients of both factors of both products; the recomputation of flash attention is the lowering's
    "tbdsim.scaled_dot_product_attention_backward": _attention(1, 2),
}


def multiply_adds(step: Step, operator: Operator, batch: int = 1) -> int:
    """Returns the multiply-adds of an operator at a batch; 0 for all but convolutions, matrix products,
    recurrent layers and attention."""
    count = _COUNTS.get(operator.name)
    return count(step, operator, batch) if count is not None else 0
