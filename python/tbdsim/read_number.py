"""A number that a step reads from the GPU, of which a capture knows that it is read but not what it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import wraps
from numbers import Number
from typing import Any

#: Numbers that stand for one that is read, one in each recording in turn. A step that runs alike with all of them does not decide by it.
STAND_INS = (1.0, 0.001, 100.0)


def whole_stand_in(number: float) -> int:
    """Returns the whole number for one of STAND_INS: 1, 2, 3, of which no size can be a + b x batch at batches of 2, 3 and 5."""
    return STAND_INS.index(number) + 1


class ReadNumber(float):
    """What `tensor.item()` gives in a capture: it can be handed on, printed, added up and averaged. To compare it, or to make another
    number of it, tells `compared` where it was read."""

    where: str
    compared: Callable[[str], None]

    def __new__(cls, value: float, where: str, compared: Callable[[str], None]) -> ReadNumber:
        number = super().__new__(cls, value)
        number.where, number.compared = where, compared
        return number

    def _whole(self) -> int:
        self.compared(self.where)
        return whole_stand_in(super().__float__())

    __int__ = __index__ = __trunc__ = __floor__ = __ceil__ = _whole
    __hash__ = float.__hash__

    def __round__(self, digits: int | None = None) -> Any:
        return self._whole() if digits is None else self

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

    def _number(self, *others: Any) -> Any:
        """Returns the number that arithmetic gives; with a tensor or an array, which are no numbers, arithmetic is theirs."""
        return self if all(isinstance(other, Number) for other in others) else NotImplemented

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _number
    __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _number

    def _two_numbers(self, *_: Any) -> tuple[ReadNumber, ReadNumber]:
        return self, self

    __divmod__ = __rdivmod__ = _two_numbers

    def is_integer(self) -> bool:
        self.compared(self.where)
        return super().is_integer()

    def as_integer_ratio(self) -> tuple[int, int]:
        self.compared(self.where)
        return super().as_integer_ratio()


#: Functions of `math` that make a number of numbers. They take a float as it is, whatever its class says.
FUNCTIONS_OF_NUMBERS = (
    *("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "pow", "fabs", "hypot", "fmod", "remainder", "copysign"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "degrees", "radians"),
    *("erf", "erfc", "gamma", "lgamma", "fma", "ldexp", "dist", "fsum", "prod", "sumprod"),
)


def of_read_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of `math` that gives a number which is read where it is given one, alone or in a list."""

    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        # An iterator can be gone through once. Tensors and arrays of one number are iterable and numbers, too.
        whole = [list(a) if isinstance(a, Iterable) and not hasattr(a, "__float__") else a for a in arguments]
        for argument in whole:
            for number in argument if isinstance(argument, list) else [argument]:
                if isinstance(number, ReadNumber):
                    return number
        return function(*whole, **named)

    return called


def close_to_read_numbers(a: float, b: float, **tolerances: float) -> bool:
    """Returns `math.isclose`, which compares."""
    for number in (a, b):
        if isinstance(number, ReadNumber):
            number.compared(number.where)
    return _is_close(a, b, **tolerances)


_is_close = math.isclose
