"""A number that a step reads from the GPU, of which a capture knows that it is read but not what it is."""

from __future__ import annotations

from typing import Any, NoReturn

from .errors import CaptureError


class ReadNumber(float):
    """What `tensor.item()` gives in a capture: it can be handed on, printed, added up and averaged. To compare it, or to count or
    branch by it, is an error that names where it was read."""

    where: str

    def __new__(cls, where: str) -> ReadNumber:
        number = super().__new__(cls, 1.0)  # finite, and no zero to divide by
        number.where = where
        return number

    def _decides(self, *_: Any) -> NoReturn:
        raise CaptureError(
            f"{self.where}: it reads a number from the GPU by which the step then decides, and a capture has none: leave the decision "
            "out of the step, or give `assumed_value`"
        )

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __bool__ = __int__ = __index__ = __round__ = _decides
    __trunc__ = __floor__ = __ceil__ = _decides
    __hash__ = float.__hash__

    def _number(self, *_: Any) -> ReadNumber:
        return ReadNumber(self.where)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _number
    __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = __floordiv__ = __mod__ = _number
