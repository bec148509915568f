"""Values of tensors that a capture knows although it has no data: what follows from constants, such as positions and masks.

Two sorts are kept, by storage: the one value of every number of a tensor of any size (a mask of ones), and all numbers of a
small tensor (positions, lengths, indices), which the operators that make them are run on the host for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import CaptureError

_aten = torch.ops.aten
Number = float | int | bool

#: Bytes of a storage of which all numbers are kept, as a mask in fp32 of five sequences of 4,096 tokens; bytes and number of
#: storages beyond which those that PyTorch has freed are dropped.
_LARGEST, _DROP_BYTES, _DROP_COUNT = 1 << 29, 1 << 30, 1024
#: Bytes of a storage of which all numbers are kept when some are written to: masks and indices, but no optimizer's zeros.
_LARGEST_WRITTEN = 1 << 20

#: Operators that fill a new tensor, with the place of the value among their arguments, or the value.
_FILLS: dict[Any, tuple[int | None, Number]] = {
    _aten.full.default: (1, 0), _aten.full_like.default: (1, 0), _aten.new_full.default: (2, 0), _aten.scalar_tensor.default: (0, 0),
    _aten.ones.default: (None, 1), _aten.ones_like.default: (None, 1), _aten.new_ones.default: (None, 1),
    _aten.zeros.default: (None, 0), _aten.zeros_like.default: (None, 0), _aten.new_zeros.default: (None, 0),
}  # fmt: skip
#: Operators whose result is uniform where all tensors they read are: of each number, or of all of them.
_OF_NUMBERS = {
    "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or", "bitwise_not", "bitwise_and", "bitwise_or",
    "add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "neg", "_to_copy", "clone", "contiguous", "where",
    "all", "any", "amax", "amin", "mean",
}  # fmt: skip
#: Operators whose result has numbers of the first tensor alone.
_OF_FIRST = {"index", "index_select", "gather", "repeat", "upsample_nearest1d", "upsample_nearest2d", "masked_select"}
#: Operators whose result may be known where what they read is not.
_OF_UNKNOWN = {"isnan", "isinf", "eq", "ne", "le", "gt", "index", "index_select", "gather", "ones_like", "zeros_like", "full_like",
               "new_ones", "new_zeros", "new_full"}  # fmt: skip
#: Operators that overwrite numbers without regard to what they were.
_OVERWRITE = {"copy_", "fill_", "zero_", "scatter_", "index_copy_", "index_fill_", "index_put_", "masked_fill_", "masked_scatter_"}
#: Operators that leave the numbers of a new tensor as they find them.
_UNFILLED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}


class _Unknown(Exception):
    pass


class _Known(NamedTuple):
    storage: StorageWeakRef
    value: Number | torch.UntypedStorage


class KnownValues:
    """The values of storages that are known. Views share their storage's; an operator that writes what is not known forgets them."""

    def __init__(self) -> None:
        # By the address of the storage, which is not used again while a reference to it is kept.
        self._known: dict[int, _Known] = {}
        self._bytes = 0  # of storages of which all numbers are kept
        self._drop_at = _DROP_COUNT, _DROP_BYTES

    def value_of(self, tensor: torch.Tensor) -> Number | None:
        """Returns the value of every number of the tensor; None: not known, or not the same."""
        known = self._of_storage(tensor)
        if not isinstance(known, torch.UntypedStorage):
            return known
        numbers = _view(known, tensor).flatten()
        return numbers[0].item() if numbers.numel() and bool((numbers == numbers[0]).all()) else None

    def numbers_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Returns a tensor on the host with the numbers of one on "meta", where they are known and not too many."""
        known = self._of_storage(tensor)
        if isinstance(known, torch.UntypedStorage):
            return _view(known, tensor)
        if known is None or tensor.numel() * tensor.element_size() > _LARGEST:
            return None
        return torch.full(tensor.shape, known, dtype=tensor.dtype, device="cpu")

    def follow(self, operator: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Takes note of an operator that has run on "meta"."""
        if _written(operator):
            self._follow_writing(operator, args, kwargs)
            return
        if operator.overloadpacket.__name__ not in _OF_UNKNOWN and not self._all_known(args, kwargs):
            return
        made = [tensor for tensor in tensors_in(result) if tensor.is_meta and tensor.layout == torch.strided]
        if not made or any(self._of_storage(tensor) is not None for tensor in made):  # a view
            return
        if isinstance(result, torch.Tensor):
            value = self._uniform_result(operator, args, kwargs, result)
            if value is not None:
                self._keep(result, value)
                return
        if all(_is_small(tensor) for tensor in made):
            for tensor, there in zip(made, tensors_in(self.result_of(operator, args, kwargs))):
                if there.shape != tensor.shape:  # of a mask that is drawn (drawn_masks.py)
                    continue
                self._keep(tensor, self._storage_like(tensor, there, args))

    def _storage_like(self, tensor: torch.Tensor, there: torch.Tensor, args: Any) -> torch.UntypedStorage:
        """Returns the storage of the host that has a new tensor's numbers: that of `there`, if it is new and laid out alike."""
        storage = there.untyped_storage()
        read = [self._of_storage(read) for read in tensors_in(args)]
        is_new = not any(isinstance(known, torch.UntypedStorage) and known.data_ptr() == storage.data_ptr() for known in read)
        if is_new and there.stride() == tensor.stride() and storage.nbytes() == tensor.untyped_storage().nbytes():
            return storage
        storage = torch.UntypedStorage(tensor.untyped_storage().nbytes(), device="cpu")
        _view(storage, tensor).copy_(there)
        return storage

    def result_of(self, operator: Any, args: Any, kwargs: Any) -> Any:
        """Returns an operator's result on the host; None where a tensor it reads is not known, or where it is random."""
        try:
            return self._run_on_host(operator, args, kwargs)
        except _Unknown:
            return None

    def _run_on_host(self, operator: Any, args: Any, kwargs: Any) -> Any:
        if torch.Tag.nondeterministic_seeded in operator.tags or operator.overloadpacket.__name__ in _UNFILLED:
            raise _Unknown
        numbers: dict[int, torch.Tensor] = {}
        for tensor in tensors_in((*args, *kwargs.values())):
            there = self.numbers_of(tensor) if tensor.is_meta else tensor
            if there is None:
                raise _Unknown
            numbers[id(tensor)] = there
        try:
            with torch.device("cpu"):
                return operator(*_on_host(args, numbers), **_on_host(kwargs, numbers))
        except (NotImplementedError, RuntimeError, TypeError, IndexError):  # an operator that the host does not have
            raise _Unknown from None

    def _of_storage(self, tensor: torch.Tensor) -> Number | torch.UntypedStorage | None:
        if not tensor.is_meta or tensor.layout != torch.strided:
            return None
        known = self._known.get(tensor.untyped_storage()._cdata)
        return None if known is None else known.value

    def _keep(self, tensor: torch.Tensor, value: Number | torch.UntypedStorage) -> None:
        there = tensor.untyped_storage()
        self._known[there._cdata] = _Known(StorageWeakRef(there), value)
        self._bytes += value.nbytes() if isinstance(value, torch.UntypedStorage) else 0
        if len(self._known) >= self._drop_at[0] or self._bytes >= self._drop_at[1]:
            self._known = {address: known for address, known in self._known.items() if not known.storage.expired()}
            self._bytes = sum(known.value.nbytes() for known in self._known.values() if isinstance(known.value, torch.UntypedStorage))
            self._drop_at = 2 * len(self._known) + _DROP_COUNT, 2 * self._bytes + _DROP_BYTES

    def _all_known(self, args: Any, kwargs: Any) -> bool:
        return all(not tensor.is_meta or self._of_storage(tensor) is not None for tensor in tensors_in((args, *kwargs.values())))

    def _follow_writing(self, operator: Any, args: Any, kwargs: Any) -> None:
        """Writes what is known to what is known; else what was written to is not known any more."""
        if self._writes_nothing(operator, args):
            return
        written = written_tensors(operator, args, kwargs)
        if not written:  # it has run on tensors of the host, and must not run again
            return
        try:
            if not self._all_known(args, kwargs):
                self._write_all_over(operator, args, kwargs, written)
                return
            for tensor in written:
                self._keep_all_numbers(tensor)
            self._run_on_host(operator, args, kwargs)
        except _Unknown:
            self.forget(written)

    def _write_all_over(self, operator: Any, args: Any, kwargs: Any, written: list[torch.Tensor]) -> None:
        """Keeps a small tensor of whole numbers that was not known, if every number of it is overwritten: the result is then the
        same whatever was there before (a permutation that is scattered into an empty tensor, a copy)."""
        overwrites = operator.overloadpacket.__name__ in _OVERWRITE and not _adds_up(operator, args, kwargs)
        if not overwrites or len(written) != 1 or not _is_index(written[0]) or self._of_storage(written[0]) is not None:
            raise _Unknown
        results = []
        for before in (0, 1):
            self._keep(written[0], before)
            self._keep_all_numbers(written[0])
            if not self._all_known(args, kwargs):
                raise _Unknown
            self._run_on_host(operator, args, kwargs)
            results.append(self.numbers_of(written[0]))
        if not torch.equal(*results):
            raise _Unknown

    def forget(self, tensors: list[torch.Tensor]) -> None:
        """Takes note that tensors were written to, with what is not known."""
        for tensor in tensors:
            self._known.pop(tensor.untyped_storage()._cdata, None)

    def _writes_nothing(self, operator: Any, args: Any) -> bool:
        """Whether the operator writes where a mask holds, and it is known to hold nowhere."""
        name = operator.overloadpacket.__name__
        if name == "index_put_":
            return any(index is not None and index.dtype == torch.bool and self.value_of(index) is False for index in args[1])
        return name in ("masked_fill_", "masked_scatter_") and self.value_of(args[1]) is False

    def _keep_all_numbers(self, tensor: torch.Tensor) -> None:
        """Keeps all numbers of a uniform tensor's storage, so that some of them can be written to."""
        known = self._of_storage(tensor)
        if known is None or tensor.untyped_storage().nbytes() > _LARGEST_WRITTEN:
            raise _Unknown
        if not isinstance(known, torch.UntypedStorage):
            storage = torch.UntypedStorage(tensor.untyped_storage().nbytes(), device="cpu")
            torch.empty(0, dtype=tensor.dtype, device="cpu").set_(storage).fill_(known)
            self._keep(tensor, storage)

    # The numbers of a step are finite, as a capture assumes of a gradient scaler's check, too: isfinite() is made of
    # comparisons with themselves and with infinity.
    def _uniform_result(self, operator: Any, args: Any, kwargs: Any, result: torch.Tensor) -> Number | None:
        if operator in _FILLS:
            place, value = _FILLS[operator]
            filled = value if place is None else args[place] if place < len(args) else kwargs.get("fill_value")
            return filled if isinstance(filled, (bool, int, float)) else None
        name = operator.overloadpacket.__name__
        if name in ("isnan", "isinf"):
            return False
        if name in ("eq", "ne") and len(args) == 2 and (args[0] is args[1] or isinstance(args[1], float) and args[1] == math.inf):
            return (name == "eq") is (args[0] is args[1])
        if len(args) == 2 and isinstance(args[1], float) and (name, args[1]) in (("le", -math.inf), ("gt", math.inf)):
            return False
        if name in _OF_FIRST:
            return self._uniform(args[0])
        if name == "sum" and self._uniform(args[0]) is not None:
            return self._uniform(args[0]) * (args[0].numel() // max(result.numel(), 1))
        if name not in _OF_NUMBERS:
            return None
        read = list(tensors_in((*args, *kwargs.values())))
        if not read or any(tensor.is_meta and self._uniform(tensor) is None for tensor in read):
            return None
        if any(not tensor.is_meta and tensor.numel() != 1 for tensor in read):
            return None
        with torch.device("cpu"):
            return operator(*[self._one(a) for a in args], **{k: self._one(v) for k, v in kwargs.items()}).flatten()[0].item()

    def _uniform(self, tensor: torch.Tensor) -> Number | None:
        """Returns the one value of a tensor that is kept as such."""
        known = self._of_storage(tensor)
        return None if isinstance(known, torch.UntypedStorage) else known

    def _one(self, value: Any) -> Any:
        """Returns a tensor of one number with the dimensions of a uniform one, another device for the GPU, or what it was."""
        if isinstance(value, torch.Tensor) and value.is_meta:
            return torch.full((1,) * value.dim(), self._uniform(value), dtype=value.dtype, device="cpu")
        return torch.device("cpu") if isinstance(value, torch.device) else value


class ValuesFollowed(TorchDispatchMode):
    """Takes note of the operators that run in its block, but records none: those that make a step's model and data."""

    def __init__(self, known: KnownValues, assumed_value: float | None = None) -> None:
        super().__init__()
        self._known, self._assumed = known, assumed_value

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if made_of_parts(types):
            return NotImplemented
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunction():
            if self._reads(operator, args, kwargs):
                return self._read(operator, args, kwargs)
            result = self._run(operator, args, kwargs)
            self._known.follow(operator, args, kwargs, result)
        return result

    def _run(self, operator: Any, args: Any, kwargs: Any) -> Any:
        try:
            return operator(*args, **kwargs)
        except (NotImplementedError, RuntimeError):  # a size that depends on values
            numbers = self._known.result_of(operator, args, kwargs)
            if numbers is None:
                raise
            return on_meta(numbers)

    @staticmethod
    def _reads(operator: Any, args: Any, kwargs: Any) -> bool:
        """Whether the operator gives the host what is on the GPU: a number, an answer, a copy."""
        if not any(tensor.is_meta for tensor in tensors_in(args)):
            return False
        if operator is _aten._to_copy.default:
            return str(kwargs.get("device")) == "cpu"
        return torch.Tag.data_dependent_output in operator.tags

    def _read(self, operator: Any, args: Any, kwargs: Any) -> Any:
        known = self._known.result_of(operator, args, kwargs)
        if known is not None:
            return known
        if self._assumed is None:
            raise CaptureError(
                f"{operator}: train_step reads a value from the GPU before the step runs, and a capture has none: build what needs it "
                'on the host (`with torch.device("cpu"):`) and move it, or give `assumed_value`'
            )
        if operator is _aten._to_copy.default:
            return torch.full(args[0].shape, self._assumed, dtype=kwargs.get("dtype") or args[0].dtype, device="cpu")
        is_answer = str(operator._schema.returns[0].type) == "bool"
        return bool(self._assumed) if is_answer else torch.tensor(self._assumed, dtype=args[0].dtype, device="cpu").item()


def on_meta(value: Any) -> Any:
    """Returns an operator's result as it would be on "meta"."""
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return type(value)(on_meta(item) for item in value) if isinstance(value, (list, tuple)) else value


def batch_on_meta(tensor: torch.Tensor, batch: int, axis: int) -> torch.Tensor:
    """Returns a tensor on "meta" for a batch along `axis`. Whole numbers, as tokens and masks, are those of the example's samples, one
    after another and again from the first; other numbers are not known."""
    shape = [*tensor.shape[:axis], batch, *tensor.shape[axis + 1 :]]
    if tensor.is_meta or tensor.is_floating_point() or tensor.is_complex() or not tensor.numel():
        return torch.empty(shape, dtype=tensor.dtype, device="meta", requires_grad=tensor.requires_grad)
    first = tensor.flatten()[0]
    if bool((tensor == first).all()):
        return torch.full(shape, first.item(), dtype=tensor.dtype, device="meta")
    samples = torch.arange(batch, device="cpu") % tensor.shape[axis]
    return tensor.detach().cpu().index_select(axis, samples).to("meta")


def _is_index(tensor: torch.Tensor) -> bool:
    """Whether a tensor has whole numbers, not too many to be written to, and all of its storage's."""
    size = tensor.numel() * tensor.element_size()
    return not tensor.is_floating_point() and not tensor.is_complex() and size == tensor.untyped_storage().nbytes() <= _LARGEST_WRITTEN


def _is_small(tensor: torch.Tensor) -> bool:
    return tensor.untyped_storage().nbytes() <= _LARGEST


def _view(storage: torch.UntypedStorage, tensor: torch.Tensor) -> torch.Tensor:
    """Returns what `tensor` is of its storage, of one on the host."""
    return torch.empty(0, dtype=tensor.dtype, device="cpu").set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def _on_host(value: Any, numbers: dict[int, torch.Tensor]) -> Any:
    """Returns an argument with tensors as they are on the host, and the host's device for the GPU's."""
    if isinstance(value, torch.Tensor):
        return numbers[id(value)]
    if isinstance(value, dict):
        return {name: _on_host(item, numbers) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_on_host(item, numbers) for item in value)
    return torch.device("cpu") if isinstance(value, torch.device) else value


@cache
def _written(operator: Any) -> list[tuple[int, str]]:
    """Returns place and name of the arguments that the operator writes to."""
    return [
        (place, argument.name)
        for place, argument in enumerate(operator._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def written_tensors(operator: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Returns the tensors of the GPU that the operator writes to."""
    return [
        tensor
        for place, name in _written(operator)
        for tensor in tensors_in(args[place] if place < len(args) else kwargs.get(name))
        if tensor.is_meta and tensor.layout == torch.strided
    ]


def _adds_up(operator: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operator adds to what it finds or multiplies it: `index_put_(accumulate=True)`, `scatter_(reduce=...)`."""
    names = [argument.name for argument in operator._schema.arguments]
    given = dict(zip(names, args)) | kwargs
    return bool(given.get("accumulate") or given.get("reduce"))


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of an operator's argument or result, also those in lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def made_of_parts(types: Any) -> bool:
    """Whether an operator has a tensor of a library's class, which is made of others, as of fp8 numbers and their scale."""
    return any(kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for kind in types)


def parts_of(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensors that one is made of; the tensor itself, if it is an ordinary one."""
    if not hasattr(tensor, "__tensor_flatten__"):
        yield tensor
        return
    for name in tensor.__tensor_flatten__()[0]:
        yield from parts_of(getattr(tensor, name))
