"""Values of tensors that a capture knows although it has no data: those that follow from sizes alone, as positions and masks of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .uniform import tensors_in

#: Bytes of a storage beyond which its values are not worked out: masks of five sequences of 4,096 tokens in fp32 lie below.
_LARGEST = 1 << 29
#: Operators that fill a tensor whatever stands in the tensor they are given, which has the shape or the device.
_FILLS = {
    "full_like", "ones_like", "zeros_like", "new_full", "new_ones", "new_zeros", "full", "ones", "zeros", "eye", "arange",
    "linspace", "scalar_tensor", "tril_indices", "triu_indices",
}  # fmt: skip


class _Unknown(Exception):
    pass


class _View(NamedTuple):
    """A tensor in a version of its storage; without one, a tensor whose numbers do not matter."""

    version: _Version | None
    dtype: torch.dtype
    shape: torch.Size
    strides: tuple[int, ...]
    offset: int

    def on_host(self, storage: torch.UntypedStorage | None) -> torch.Tensor:
        """Returns the tensor in a copy of its storage."""
        if storage is None:
            return torch.empty((), dtype=self.dtype, device="cpu").expand(self.shape)
        return torch.empty(0, dtype=self.dtype, device="cpu").set_(storage, self.offset, self.shape, self.strides)


def _view(tensor: torch.Tensor, version: _Version | None) -> _View:
    return _View(version, tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset())


class _Call(NamedTuple):
    """An operator with its arguments, tensors of the GPU as views."""

    operator: Any
    args: list[Any]
    kwargs: dict[str, Any]

    def run(self, overwritten: _Version | None = None, copy: torch.UntypedStorage | None = None) -> Any:
        """Returns what the operator makes on the host, where it writes to the copy of a version."""

        def given(value: Any) -> Any:
            if isinstance(value, _View):
                version = value.version
                return value.on_host(None if version is None else copy if version is overwritten else version.storage())
            return [given(item) for item in value] if type(value) is list else value

        with torch.device("cpu"):
            return self.operator(*given(self.args), **{name: given(value) for name, value in self.kwargs.items()})


class _Version:
    """What a call leaves in a storage: all of it, or the version before with a part overwritten. It is worked out on the host when
    it is asked for."""

    def __init__(self, call: _Call, result: torch.Tensor, before: _Version | None) -> None:
        self._call, self._result, self._before = call, _view(result, None), before
        self._bytes = result.untyped_storage().nbytes()
        self._storage: torch.UntypedStorage | None = None

    def storage(self) -> torch.UntypedStorage:
        """Returns a copy of the storage on the host."""
        if self._storage is None:
            if self._bytes > _LARGEST:
                raise _Unknown
            if self._before is None:
                values = self._call.run()
                self._storage = torch.UntypedStorage(self._bytes, device="cpu")
                self._result.on_host(self._storage).copy_(values)
            else:
                storage = self._before.storage().clone()
                self._call.run(self._before, storage)
                self._storage = storage
        return self._storage


class KnownValues:
    """How the numbers of storages came about, of those whose every number follows from sizes alone."""

    def __init__(self) -> None:
        self._versions: dict[StorageWeakRef, _Version] = {}

    def value_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Returns the tensor on the host; None: its values are not known."""
        version = self._versions.get(StorageWeakRef(tensor.untyped_storage()))
        try:
            return None if version is None else _view(tensor, version).on_host(version.storage())
        except (_Unknown, RuntimeError, NotImplementedError):
            return None

    def result_of(self, operator: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
        """Returns the tensor that an operator makes of known values, on the host; None where they are not known."""
        call = self._call(operator, args, kwargs)
        try:
            result = None if call is None else call.run()
        except (_Unknown, RuntimeError, NotImplementedError):
            return None
        return result if isinstance(result, torch.Tensor) else None

    def follow(self, operator: Any, args: Any, kwargs: Any, result: Any, written: list[torch.Tensor]) -> None:
        """Takes note of an operator that has run and wrote to some of its arguments. A view shares the version of its storage."""
        if not written:
            if isinstance(result, torch.Tensor) and result.device.type == "meta" and self._version(result) is None:
                self._keep(self._call(operator, args, kwargs), result, None)
            return
        before = [self._version(tensor) for tensor in written]
        call = self._call(operator, args, kwargs) if len(written) == 1 and before[0] is not None else None
        for tensor in written:
            self._versions.pop(StorageWeakRef(tensor.untyped_storage()), None)
        self._keep(call, written[0], before[0])

    def _version(self, tensor: torch.Tensor) -> _Version | None:
        return self._versions.get(StorageWeakRef(tensor.untyped_storage()))

    def _keep(self, call: _Call | None, tensor: torch.Tensor, before: _Version | None) -> None:
        if call is not None:
            self._versions = {storage: version for storage, version in self._versions.items() if not storage.expired()}
            self._versions[StorageWeakRef(tensor.untyped_storage())] = _Version(call, tensor, before)

    def _call(self, operator: Any, args: Any, kwargs: Any) -> _Call | None:
        """Returns the call as it can be run on the host; None where a value is not known, by chance or of the host."""
        name = operator.overloadpacket.__name__
        fills = name in _FILLS
        if torch.Tag.nondeterministic_seeded in operator.tags or "empty" in name:
            return None
        if not fills and not any(tensor.device.type == "meta" for tensor in tensors_in((*args, *kwargs.values()))):
            return None
        try:
            given = [self._given(value, fills) for value in args]
            return _Call(operator, given, {name: self._given(value, fills) for name, value in kwargs.items()})
        except _Unknown:
            return None

    def _given(self, value: Any, fills: bool) -> Any:
        if isinstance(value, torch.Tensor):
            if value.device.type != "meta":
                if value.numel() != 1:  # data of the host, which is another in each step
                    raise _Unknown
                return value.clone()
            version = self._version(value)
            if version is None and not fills:
                raise _Unknown
            return _view(value, version)
        if isinstance(value, (list, tuple)):
            return [self._given(item, fills) for item in value]
        return torch.device("cpu") if isinstance(value, torch.device) else value
