"""Kernels that a library writes in Triton: recorded as one operator each, of the tensors that they load and store."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module, util
from typing import Any, NamedTuple

import torch

from .replaced import replaced

_STORES, _LOADS = {"store", "atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_cas"}, {"load"}
_PRODUCTS = {"dot", "dot_scaled"}

#: Takes a kernel's name, whether it multiplies matrices, the tensors that it loads and those that it stores.
Launched = Callable[[str, bool, list[torch.Tensor], list[torch.Tensor]], None]


class _Source(NamedTuple):
    """What a kernel's source tells: the parameters it loads from and those it stores to; whether it multiplies matrices."""

    loaded: frozenset[str]
    stored: frozenset[str]
    multiplies: bool


@cache
def _source(kernel: Any) -> _Source:
    """Returns what a kernel does with its parameters, also by variables that are computed from them and in functions it calls."""
    of: dict[str, set[str]] = {name: {name} for name in kernel.arg_names}  # variables, by the parameters they are computed from
    loaded: set[str] = set()
    stored: set[str] = set()
    multiplies = False

    def parameters(expression: ast.AST) -> set[str]:
        return {one for node in ast.walk(expression) if isinstance(node, ast.Name) for one in of.get(node.id, ())}

    for node in _in_order(ast.parse(kernel.src)):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name) and not _loads(node.value):
                        of[name.id] = of.get(name.id, set()) | parameters(node.value)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            multiplies = multiplies or name in _PRODUCTS
            named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
            pointer = node.args[0] if node.args else named.get("pointer")
            if name in _LOADS and pointer is not None:
                loaded |= parameters(pointer)
            elif name in _STORES and pointer is not None:
                stored |= parameters(pointer)
                loaded |= set() if name == "store" else parameters(pointer)
            elif (called := kernel.fn.__globals__.get(name)) is not None and hasattr(called, "arg_names") and called is not kernel:
                inner = _source(called)
                multiplies = multiplies or inner.multiplies
                for argument, given in [*zip(called.arg_names, node.args), *named.items()]:
                    loaded |= parameters(given) if argument in inner.loaded else set()
                    stored |= parameters(given) if argument in inner.stored else set()
    return _Source(frozenset(loaded), frozenset(stored), multiplies)


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, in the order of the source."""
    for child in ast.iter_child_nodes(node):
        yield child
        yield from _in_order(child)


def _loads(expression: ast.AST) -> bool:
    """Whether an expression has values that are loaded, not addresses."""
    return any(isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _LOADS for node in ast.walk(expression))


def _launch(launched: Launched) -> Any:
    """Returns `JITFunction.run`, which compiles and launches a kernel."""

    def run(self: Any, *args: Any, grid: Any = None, warmup: bool = False, **kwargs: Any) -> None:
        given = {**dict(zip(self.arg_names, args)), **kwargs}
        tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
        if not any(tensor.is_meta for tensor in tensors.values()):
            return
        source = _source(self)
        stored = [tensor for name, tensor in tensors.items() if name in source.stored]
        loaded = [tensor for name, tensor in tensors.items() if name in source.loaded or name not in source.stored]
        launched(self.fn.__name__, source.multiplies, loaded, stored)

    return run


def _first_configuration(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Stands for `Autotuner.run`, which times a kernel's configurations: tensors are the same in each."""
    return self.fn.run(*args, **{**self.configs[0].all_kwargs(), **kwargs})


@contextmanager
def triton_kernels(launched: Launched) -> Iterator[None]:
    """Calls `launched` for each kernel of Triton that would run on the GPU, until the block ends."""
    with ExitStack() as stack:
        if util.find_spec("triton") is not None:
            stack.enter_context(replaced(import_module("triton.runtime.jit").JITFunction, "run", _launch(launched)))
            stack.enter_context(replaced(import_module("triton.runtime.autotuner").Autotuner, "run", _first_configuration))
        yield
