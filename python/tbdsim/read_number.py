"""A number that a step reads from the GPU, of which a capture knows that it is read but not what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .errors import CaptureError

#: Numbers that stand for one that is read, one in each recording in turn. A step that runs alike with all of them does not decide by it.
STAND_INS = (1.0, 0.001, 100.0)


class ReadNumber(float):
    """What `tensor.item()` gives in a capture: it can be handed on, printed, added up and averaged. To compare it tells `compared`
    where it was read; to count by it is an error that names the place."""

    where: str
    compared: Callable[[str], None]

    def __new__(cls, value: float, where: str, compared: Callable[[str], None]) -> ReadNumber:
        number = super().__new__(cls, value)
        number.where, number.compared = where, compared
        return number

    def _counts(self, *_: Any) -> NoReturn:
        raise CaptureError(
            f"{self.where}: it reads a number from the GPU by which the step then counts, and a capture has none: leave that out of "
            "the step, or give `assumed_value`"
        )

    __int__ = __index__ = __round__ = __trunc__ = __floor__ = __ceil__ = _counts
    __hash__ = float.__hash__

    def __lt__(self, other: float) -> bool:
        self.compared(self.where)
        return super().__lt__(other)

    def __le__(self, other: float) -> bool:
        self.compared(self.where)
        return super().__le__(other)

    def __gt__(self, other: float) -> bool:
        self.compared(self.where)
        return super().__gt__(other)

    def __ge__(self, other: float) -> bool:
        self.compared(self.where)
        return super().__ge__(other)

    def __eq__(self, other: object) -> bool:
        self.compared(self.where)
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        self.compared(self.where)
        return super().__ne__(other)

    def __bool__(self) -> bool:
        self.compared(self.where)
        return super().__bool__()

    def __float__(self) -> float:
        self.compared(self.where)  # perhaps, later: an ordinary number does not tell
        return super().__float__()

    def _number(self, *_: Any) -> ReadNumber:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _number
    __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = __floordiv__ = __mod__ = _number
