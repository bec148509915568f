"""Blocks of memory and their lifetimes, told by weak references: exactly when PyTorch itself lets go."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from .recording import StorageRecord, TensorUse

DTYPES = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float64: "f64",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
    torch.complex64: "c64",
    torch.complex128: "c128",
}


class Storages:
    """The storages that a step's tensors lie in, by order of their first use."""

    def __init__(self, last_operator: Callable[[], int]) -> None:
        self.records: list[StorageRecord] = []
        self._last_operator = last_operator
        self._index_of: dict[int, int] = {}
        self._watched: dict[int, Any] = {}

    def index(self, tensor: torch.Tensor, role: str, made: int = -1, name: str = "") -> int:
        """Returns the index of the tensor's storage; one that was not met before gets the role, the maker and the name."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        index = self._index_of.get(key)
        if index is None:
            index = self._index_of[key] = len(self.records)
            role = role if tensor.is_meta else "host"
            self.records.append(StorageRecord(role, storage.nbytes(), made, -1, name))
            self._watched[key] = weakref.ref(storage, lambda _: self._freed(key))
        return index

    def mark(self, tensor: torch.Tensor, role: str, name: str) -> None:
        """Gives the storage of a tensor another role and name."""
        index = self.index(tensor, role, -1, name)
        self.records[index].role, self.records[index].name = role, name

    def _freed(self, key: int) -> None:
        self.records[self._index_of.pop(key)].freed = self._last_operator()
        del self._watched[key]

    def use(self, tensor: torch.Tensor, role: str, made: int) -> TensorUse:
        """Returns the tensor as plain values; where one of the host lies in its storage is left out."""
        offset = tensor.storage_offset() if tensor.is_meta else 0
        return TensorUse(self.index(tensor, role, made), DTYPES[tensor.dtype], tuple(tensor.shape), tensor.stride(), offset)

    def stop(self) -> None:
        """Ends watching: what lives now is kept beyond the step."""
        self._watched.clear()
        self._index_of.clear()
