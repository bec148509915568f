"""Records every operator that PyTorch dispatches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .drawn_masks import DrawnMasks
from .errors import CaptureError
from .known_values import KnownValues, made_of_parts, on_meta, tensors_in, written_tensors
from .largest_sizes import is_mask, largest_result, with_places
from .modules import Modules
from .read_number import STAND_INS, ReadNumber, whole_stand_in
from .recording import Dtype, OperatorRecord, Recording, TensorUse
from .shapes import Shapes
from .storages import DTYPES, Storages

_META = torch.device("meta")

#: The role of a storage that an operator makes, by the operator's phase.
_ROLES = {"forward": "activation", "backward": "gradient_map", "update": "temporary", "zero": "temporary"}


@cache
def _name(operator: Any) -> str:
    """Returns the operator's name with overload; those of this package have no overloads."""
    return str(operator).removesuffix(".default") if operator.namespace == "tbdsim" else str(operator)


@cache
def _is_composite(operator: Any) -> bool:
    """Whether PyTorch makes the operator of others on every device: it has no kernel of its own, as `silu_backward` has."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    name = operator.name()
    return has_kernel(name, "CompositeImplicitAutograd") and not has_kernel(name, "CPU") and operator._can_decompose()


@cache
def _defaults(operator: Any) -> list[tuple[str, Any]]:
    """Returns name and default value (None where there is none) of the operator's arguments, in the schema's order."""
    return [
        (argument.name, argument.default_value if argument.has_default_value() else None)
        for argument in operator._schema.arguments
    ]


#: Lookups, with the place of `sparse` among their arguments.
_LOOKUPS = {torch.ops.aten.embedding.default: 4, torch.ops.aten._embedding_bag.default: 5}


def _makes_sparse_gradients(operator: Any, args: Any) -> bool:
    """Whether an operator is a lookup whose backward pass will make a sparse gradient."""
    place = _LOOKUPS.get(operator)
    is_sparse = place is not None and len(args) > place and args[place] is True
    return is_sparse and args[0].requires_grad and torch.is_grad_enabled()


class Recorder(TorchDispatchMode):
    """Records operators with a tensor of the device "meta", which stands for the GPU. Operators on the host alone just run."""

    def __init__(
        self,
        modules: Modules,
        shapes: Shapes,
        known: KnownValues,
        assumed_value: float | None = None,
        largest_sizes: bool | float = False,
        stand_in: float | None = None,
        drawn: DrawnMasks | None = None,
    ) -> None:
        super().__init__()
        self.modules, self.shapes = modules, shapes
        self.storages = Storages(lambda: len(self.operators) - 1)
        self.operators: list[OperatorRecord] = []
        self.warnings: list[str] = []
        self.optimizers: dict[int, torch.optim.Optimizer] = {}
        self._phases: list[str] = []
        self._backward_has_run = False
        self._scalar: float | None = None
        self._known = known
        self._assumed = assumed_value
        self._largest = float(largest_sizes)
        self._stand_in = stand_in
        self._drawn = drawn or DrawnMasks()
        self._drawn.begin()
        self._read: list[str] = []  # where numbers were read by which the step may decide
        self._inside = False  # an operator, which may launch kernels of Triton

    # phases

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """What is recorded in the block belongs to the phase of that name, unless a phase is open already."""
        self._phases.append(self._phases[0] if self._phases else name)
        try:
            yield
        finally:
            self._phases.pop()
            self._backward_has_run = self._backward_has_run or name == "backward"

    @contextmanager
    def no_phase(self) -> Iterator[None]:
        """What is recorded in the block belongs to the phases that it opens itself: a closure that an optimizer calls."""
        before, self._phases = self._phases, []
        self._backward_has_run = False
        try:
            yield
        finally:
            self._phases = before

    def _phase(self) -> str:
        if self._phases:
            return self._phases[0]
        if self.modules.inside:
            self._backward_has_run = False
        return "update" if self._backward_has_run else "forward"

    @contextmanager
    def scalars_are(self, value: float) -> Iterator[None]:
        """Lets `.item()` return a value in the block: for what PyTorch itself reads, such as the gradient scaler's flag."""
        before, self._scalar = self._scalar, value
        try:
            yield
        finally:
            self._scalar = before

    def synchronize(self) -> None:
        """Records that the host waits for the GPU."""
        self.operators.append(OperatorRecord("tbdsim.synchronize", self._phase(), self.modules.current(), [], []))

    def launch(self, kernel: str, multiplies: bool, loaded: list[torch.Tensor], stored: list[torch.Tensor]) -> None:
        """Records a kernel of Triton that the step launches itself."""
        if self._inside:
            return
        with torch._C.DisableTorchFunction():
            phase, path = self._phase(), self._path()
            if multiplies:
                raise CaptureError(
                    f"triton.{kernel} in module '{path}', {phase}: a kernel of Triton that multiplies matrices, and a capture cannot "
                    "tell how many: let the library run PyTorch's operators instead"
                )
            self._known.forget(stored)
            made = len(self.operators)
            arguments = [self._use(tensor, "input", -1) for tensor in loaded]
            outputs: list[TensorUse | None] = [self._use(tensor, _ROLES[phase], made) for tensor in stored]
            self.operators.append(OperatorRecord(f"triton.{kernel}", phase, self.modules.current(), arguments, outputs))

    @property
    def scalars_are_known(self) -> bool:
        """Whether `.item()` gives a value now."""
        return self._scalar is not None or self._assumed is not None

    @property
    def can_tell(self) -> bool:
        """Whether recordings with other numbers tell if the step decides by one that it reads."""
        return self._stand_in is not None

    @property
    def in_optimizer(self) -> bool:
        """Whether an optimizer or clipping runs now, whose kernels do not depend on the numbers that it reads: the norm of a
        parameter by which Adafactor scales, a condition by which a line search ends."""
        return self._phases[:1] == ["update"]

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether every number of the tensor has the same value, which is known."""
        return self._known.value_of(tensor) is not None

    # operators

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if made_of_parts(types):
            return NotImplemented  # the class runs operators on its parts
        if _is_composite(operator):  # where autograd is left out: in inference mode and in such a class
            with self:
                return operator.decompose(*args, **(kwargs or {}))
        self._inside = True
        try:
            with torch._C.DisableTorchFunction():  # its own code and kernels of "meta" are not told that this is "cuda"
                return self._dispatch(operator, args, kwargs or {})
        finally:
            self._inside = False

    def _dispatch(self, operator: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if operator is torch.ops.aten.index.Tensor and (self._largest or self._knows_masks(args[1])):
            with self:
                args = with_places(operator, args) or args
        if _makes_sparse_gradients(operator, args):
            reason = "its gradient is sparse, and a capture has dense tensors alone: leave out `sparse=True`"
            raise self._error(operator, reason + ", gradients and updates of all rows are then charged")
        on_gpu = any(tensor.is_meta for tensor in tensors_in((*args, *kwargs.values())))
        if operator is torch.ops.aten._local_scalar_dense.default and on_gpu:
            result: Any = self._read_scalar(operator, args[0])
        elif operator is torch.ops.aten._to_copy.default and on_gpu and kwargs.get("device", _META).type == "cpu":
            result = self._copy_to_host(operator, args[0], kwargs)
        else:
            result = self._run(operator, args, kwargs)
            self._known.follow(operator, args, kwargs, result)
            if operator is torch.ops.aten._to_copy.default and not on_gpu and result.is_meta and result.dim() > 1:
                self._backward_has_run = False  # the next batch is copied to the GPU (a vector may be an update's): no module runs yet
        if (on_gpu or any(tensor.is_meta for tensor in tensors_in(result))) and not self._is_own_detach(operator):
            self._record(operator, args, kwargs, result)
        return result

    def _knows_masks(self, indices: Any) -> bool:
        return all(self._known.numbers_of(index) is not None for index in indices if is_mask(index))

    @staticmethod
    def _is_own_detach(operator: Any) -> bool:
        """Whether this `detach` is there for the recording alone: autograd saves and unpacks tensors without one, and hands over
        gradients with one. One that the step itself calls moves nothing either and is not told apart."""
        if operator is not torch.ops.aten.detach.default:
            return False
        return getattr(torch._C._current_autograd_node(), "variable", None) is None

    def _read_scalar(self, operator: Any, tensor: torch.Tensor) -> float | int | bool:
        """Returns what `.item()` gives: what PyTorch's own question expects, the value where it is known, else the assumed one,
        which a warning names."""
        if self._scalar is not None:
            return self._scalar
        known = self._known.value_of(tensor)
        if known is not None:
            return known
        assumed = 1.0 if self._assumed is None and self.in_optimizer else self._assumed
        if assumed is None:
            raise self._error(
                operator,
                "it reads a value from the GPU, and a capture has none: move `if tensor:` and the like "
                "out of the step, or give `assumed_value`",
            )
        value = bool(assumed) if tensor.dtype == torch.bool else assumed
        value = value if tensor.is_floating_point() or tensor.dtype == torch.bool else int(value)
        self.warnings.append(f"{self._where(operator)}: it reads a value from the GPU; {value} is assumed")
        return value

    def _copy_to_host(self, operator: Any, tensor: torch.Tensor, kwargs: dict[str, Any]) -> torch.Tensor:
        """Returns a tensor on the host, with the values where they are known, else filled with the assumed one or a stand-in."""
        numbers = self._known.numbers_of(tensor)
        if numbers is not None:
            return numbers.to(kwargs.get("dtype") or tensor.dtype, copy=True)
        if self._stand_in is not None:
            self._compared(self._where(operator))  # perhaps, later: ordinary numbers do not tell
            value: float | int = self._stand_in
            if not tensor.is_floating_point():
                value = whole_stand_in(value) - (tensor.dtype == torch.bool)  # False, True, True
            return torch.full(tensor.shape, value, dtype=kwargs.get("dtype") or tensor.dtype, device="cpu")
        if self._assumed is None:
            raise self._error(
                operator,
                "it copies values to the host, and a capture has none: leave that out of the step, or give `assumed_value`",
            )
        self.warnings.append(f"{self._where(operator)}: it copies values to the host; {self._assumed} is assumed")
        return torch.full(tensor.shape, self._assumed, dtype=kwargs.get("dtype") or tensor.dtype)

    def _run(self, operator: Any, args: Any, kwargs: Any) -> Any:
        try:
            return self.shapes.run(operator, args, kwargs)
        except CaptureError:
            raise
        except (NotImplementedError, RuntimeError) as error:
            dynamic = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output} & set(operator.tags)
            numbers = self._known.result_of(operator, args, kwargs)
            if numbers is not None:
                return on_meta(self._evenly_drawn(operator, numbers, args))
            if torch.Tag.data_dependent_output in operator.tags and str(operator._schema.returns[0].type) == "bool":
                return self._read_scalar(operator, torch.empty((), dtype=torch.bool, device="meta"))  # `torch.equal`, `allclose`
            result = largest_result(operator, self._largest, args, kwargs) if self._largest else None
            if result is not None:
                part = "the largest" if self._largest == 1 else f"{self._largest:g} of the largest"
                self.warnings.append(f"{self._where(operator)}: the size of its result depends on the data; {part} is recorded")
                return result
            if dynamic:
                reason = "the size of its result depends on the data, and a capture has none: leave it out, or give `largest_sizes`"
            elif isinstance(error, NotImplementedError):
                reason = 'PyTorch cannot tell its shapes without values (no kernel for the device "meta")'
            else:
                reason = str(error).strip().split("\n")[0]
                if "CPU" in reason:  # such as lengths of sequences that are packed
                    reason += "; make what the host reads on it: `device=\"cpu\"`"
                if self._read:
                    reason += f"; or the step decides by a number that it reads from the GPU: {self._read[-1]}"
            raise self._error(operator, reason) from error

    def _evenly_drawn(self, operator: Any, result: Any, args: Any) -> Any:
        """Returns the result; of `nonzero` with as many places as DrawnMasks says."""
        if operator is not torch.ops.aten.nonzero.default:
            return result
        places = self._drawn.count(args[0].numel(), result.shape[0])
        if places == result.shape[0]:
            return result
        return result.new_zeros(result.shape[1], places).t()  # as `nonzero` lays them out

    def read_number(self, may_decide: bool) -> ReadNumber:
        """Returns what stands for a number that is read now. A comparison of it is an error where the recording is the only one."""
        where = self._where(torch.ops.aten._local_scalar_dense.default)
        if may_decide:
            self._compared(where)
        return ReadNumber(self._stand_in or STAND_INS[0], where, self._compared)

    def _compared(self, where: str) -> None:
        if self._stand_in is None:
            raise CaptureError(
                f"{where}: it reads a number from the GPU by which the step then decides, and a capture at one batch cannot tell: leave "
                "the decision out of the step, or give `assumed_value`"
            )
        self._read.append(where)

    def _where(self, operator: Any) -> str:
        path, kind = self.modules.met[self.modules.current()]
        return f"{_name(operator)} in module '{path}' ({kind}), {self._phase()}"

    def _error(self, operator: Any, reason: str) -> CaptureError:
        return CaptureError(f"{self._where(operator)}: {reason}")

    def _record(self, operator: Any, args: Any, kwargs: Any, result: Any) -> None:
        phase = self._phase()
        names = _defaults(operator)
        given = list(args) + [kwargs.get(name, default) for name, default in names[len(args) :]]
        arguments = [self._argument(value, phase) for value in given]
        made = len(self.operators)
        outputs: list[TensorUse | None] = []
        for value in result if isinstance(result, (tuple, list)) else (result,):
            for item in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(item, torch.Tensor):
                    outputs.append(self._use(item, _ROLES[phase], made))
                elif item is None and isinstance(result, (tuple, list)):
                    outputs.append(None)
        if not outputs and operator.namespace not in ("aten", "tbdsim"):  # a library's operator that writes to its arguments
            outputs += [self._use(tensor, _ROLES[phase], made) for tensor in written_tensors(operator, args, kwargs)]
        self.operators.append(OperatorRecord(_name(operator), phase, self.modules.current(), arguments, outputs))

    def _use(self, tensor: torch.Tensor, role: str, made: int) -> TensorUse:
        if tensor.layout != torch.strided:
            raise CaptureError(f"a tensor of layout {tensor.layout} in module '{self._path()}': only strided tensors are captured")
        self._dtype(tensor.dtype)
        return self.storages.use(tensor, role, made)

    def _dtype(self, dtype: torch.dtype) -> str:
        if dtype not in DTYPES:
            raise CaptureError(f"a tensor of {dtype} in module '{self._path()}': expected one of {', '.join(map(str, DTYPES))}")
        return DTYPES[dtype]

    def _path(self) -> str:
        return self.modules.met[self.modules.current()][0]

    def _argument(self, value: Any, phase: str) -> Any:
        kind = type(value)
        if kind in (int, float, bool, str) or value is None:
            return value
        if isinstance(value, torch.Tensor):
            return self._use(value, "input", -1)
        if isinstance(value, (list, tuple)):
            return [self._argument(item, phase) for item in value]
        if kind is torch.dtype:
            return Dtype(self._dtype(value))
        if kind is torch.device:
            return "cuda" if value.type == "meta" else value.type
        if kind is complex:
            return str(value)
        if kind in (torch.memory_format, torch.layout):
            return str(value).removeprefix("torch.")
        return kind.__name__  # a generator, a group of processes: which one changes nothing

    def recording(self) -> Recording:
        """Returns what was recorded; what lives now is kept beyond the step."""
        self.storages.stop()
        return Recording(self.modules.met, self.storages.records, self.operators, self.warnings, self._read)
