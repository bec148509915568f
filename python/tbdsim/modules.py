"""Which module runs, in the forward pass and, by autograd's nodes, in the backward pass."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch


class Modules:
    """The modules that run, as a stack, and the module in which each node of autograd's graph was made.

    An index counts modules in the order in which they are first met; 0 is the whole model (or the step, where there is none).
    """

    def __init__(self, model: torch.nn.Module | None = None) -> None:
        self.met: list[tuple[str, str]] = [("", type(model).__name__ if model is not None else "step")]
        self._index_of: dict[int, int] = {}
        self._paths: dict[int, str] = {}
        self._owners: dict[int, torch.nn.Module] = {}
        self._roots: list[torch.nn.Module] = []
        self._root_paths: list[str] = []
        self._stack: list[int] = [0]
        # autograd numbers its nodes; `_changes` holds the number at which each module in `_at_changes` began to run
        self._changes: list[int] = [0]
        self._at_changes: list[int] = [0]
        if model is not None:
            self._add_root(model, "")
            self._index_of[id(model)] = 0

    @property
    def roots(self) -> list[torch.nn.Module]:
        """The models: modules that were called and are part of no other."""
        return self._roots

    @property
    def root_paths(self) -> list[str]:
        """The paths of the models: none for the first, the class of others, numbered from 2 on where it is that of several."""
        return self._root_paths

    def _free_path(self, kind: str) -> str:
        """Returns the path of a further model of a class."""
        path, number = kind, 1
        while path in self._root_paths:
            number += 1
            path = f"{kind} {number}"
        return path

    def _add_root(self, root: torch.nn.Module, path: str) -> None:
        self._roots.append(root)
        self._root_paths.append(path)
        for name, module in root.named_modules():
            self._paths[id(module)] = ".".join(part for part in (path, name) if part)
            for parameter in module.parameters(recurse=False):
                self._owners[id(parameter)] = module

    def index(self, module: torch.nn.Module) -> int:
        """Returns the index of a module. One that is in no model that was met before is a further model, named by its class."""
        if id(module) not in self._paths:
            self._add_root(module, self._free_path(type(module).__name__) if self._roots else "")
            if len(self._roots) == 1:
                self.met[0] = ("", type(module).__name__)
                self._index_of[id(module)] = 0
        if id(module) not in self._index_of:
            self._index_of[id(module)] = len(self.met)
            self.met.append((self._paths[id(module)], type(module).__name__))
        return self._index_of[id(module)]

    def _changed(self) -> None:
        number = torch._C._autograd._get_sequence_nr()
        if number == self._changes[-1]:
            self._at_changes[-1] = self._stack[-1]
        elif number > self._changes[-1]:
            self._changes.append(number)
            self._at_changes.append(self._stack[-1])

    def enter(self, module: torch.nn.Module, _: Any) -> None:
        self._stack.append(self.index(module))
        self._changed()

    def leave(self, module: torch.nn.Module, _: Any, __: Any) -> None:
        if len(self._stack) > 1:
            self._stack.pop()
            self._changed()

    @property
    def inside(self) -> bool:
        """Whether a module's forward runs now."""
        return len(self._stack) > 1

    def current(self) -> int:
        """Returns the index of the module that runs now; in the backward pass, of the one that made the node which runs."""
        node = torch._C._current_autograd_node()
        if self.inside or node is None:
            return self._stack[-1]
        variable = getattr(node, "variable", None)
        if variable is not None:
            owner = self._owners.get(id(variable))
            return self.index(owner) if owner is not None else 0
        return self._at_changes[bisect_right(self._changes, node._sequence_nr()) - 1]

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Follows every module that is called until the block ends."""
        with ExitStack() as stack:
            before = torch.nn.modules.module.register_module_forward_pre_hook(self.enter)
            stack.callback(before.remove)
            after = torch.nn.modules.module.register_module_forward_hook(self.leave, always_call=True)
            stack.callback(after.remove)
            yield
