"""What PyTorch's own Python code and a training script read from the GPU, and what a capture answers."""

from __future__ import annotations

import math
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from .read_number import FUNCTIONS_OF_NUMBERS, close_to_read_numbers, of_read_numbers
from .recorder import Recorder
from .replaced import replaced


def _step_unless_infinite(recorder: Recorder) -> Any:
    """Returns `GradScaler._maybe_opt_step`, which reads from the GPU whether gradients are infinite: they are not."""

    def maybe_step(self: Any, optimizer: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        with recorder.scalars_are(0.0), recorder.phase("update"):
            infinite = sum(value.item() for value in state["found_inf_per_device"].values())
        return None if infinite else optimizer.step(*args, **kwargs)

    return maybe_step


def _update_average(recorder: Recorder) -> Any:
    """Returns `AveragedModel.update_parameters`, which reads from the GPU whether it is called for the first time: it is not."""
    averaged = import_module("torch.optim.swa_utils").AveragedModel
    original = averaged.update_parameters

    def update(self: Any, model: torch.nn.Module) -> None:
        count = self.n_averaged
        with recorder.scalars_are(1.0), recorder.phase("update"):
            (count == 0).item(), (count > 0).item()
        self.n_averaged = torch.ones((), dtype=torch.int64, device="cpu")
        try:
            with recorder.phase("update"):
                original(self, model)
        finally:
            self.n_averaged = count
        with recorder.phase("update"):
            count.add_(1)

    return update


def _read(recorder: Recorder, name: str, stand_in: Callable[[], Any]) -> Any:
    """Returns the method of `torch.Tensor` of that name, which reads a number: of one on the GPU that is not known, its stand-in."""
    original = getattr(torch.Tensor, name)

    def read(self: torch.Tensor) -> Any:
        known = recorder.scalars_are_known or recorder.in_optimizer or recorder.knows(self)
        if not self.is_meta or self.dtype == torch.bool or known:
            return original(self)
        number = stand_in()
        with recorder.scalars_are(1.0):
            original(self)
        return number

    return read


def _ordinary(recorder: Recorder, name: str, kind: Callable[[Any], Any]) -> Any:
    """Returns `Tensor.__float__` or `__int__`. An ordinary number does not tell when it is compared: reading it counts as that."""
    if not recorder.can_tell:  # what PyTorch's own gives is an error
        return getattr(torch.Tensor, name)
    return _read(recorder, name, lambda: kind(recorder.read_number(may_decide=True)))


def _format(self: torch.Tensor, form: str) -> str:
    """Returns a tensor as text; PyTorch's own `__format__` reads a number of the GPU as `.item()` does, but none of "meta"."""
    return self.detach().item().__format__(form) if self.dim() == 0 else object.__format__(self, form)


def _valid(recorder: Recorder, function: Any) -> Any:
    """Returns a function of `torch.distributions` that asks whether arguments or samples are valid: they are."""

    def checked(*args: Any, **kwargs: Any) -> Any:
        with recorder.scalars_are(1.0):
            return function(*args, **kwargs)

    return checked


def _all_iterations(original: Any) -> Any:
    """Returns `LBFGS.step`, which ends when gradients or steps are small: they are not, and it makes all its iterations."""

    @wraps(original)  # the mark that it calls hooks among its attributes
    def step(self: torch.optim.LBFGS, closure: Any) -> Any:
        (group,) = self.param_groups
        given = {name: group[name] for name in ("tolerance_grad", "tolerance_change")}
        group.update(dict.fromkeys(given, -torch.inf))
        try:
            return original(self, closure)
        finally:
            group.update(given)

    return step


def _first_trial(recorder: Recorder) -> Any:
    """Returns the line search of LBFGS, which takes the first step that it tries."""

    def search(evaluate: Any, x: Any, t: Any, d: Any, f: float, g: Any, gtd: Any, *_: Any, **__: Any) -> Any:
        loss, gradient = evaluate(x, t, d)
        gradient.dot(d).item()
        recorder.warnings.append("LBFGS: its line search takes the first step that it tries")
        return loss, gradient, t, 1

    return search


def _names_of_script(functions: dict[int, str]) -> Iterator[tuple[Any, str, str]]:
    """Yields module, name and function of `math` where a script has imported one by name; `functions`: their names by identity.

    A script is what lies in no folder of Python or of packages.
    """
    folders = [*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")), Path(torch.__file__).parents[1], Path(__file__).parent]
    installed = tuple(map(str, folders))
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(module, ModuleType) and (module.__name__ == "__main__" or file and not file.startswith(installed)):
            yield from ((module, name, functions[id(value)]) for name, value in list(vars(module).items()) if id(value) in functions)


@contextmanager
def reads_answered(recorder: Recorder) -> Iterator[None]:
    """Answers until the block ends what is asked of values in gradient scalers, averaged weights, distributions, and by `.item()`."""
    averaged, distribution = import_module("torch.optim.swa_utils").AveragedModel, torch.distributions.Distribution
    with ExitStack() as stack:
        stack.enter_context(replaced(torch.amp.GradScaler, "_maybe_opt_step", _step_unless_infinite(recorder)))
        stack.enter_context(replaced(averaged, "update_parameters", _update_average(recorder)))
        stack.enter_context(replaced(torch.Tensor, "item", _read(recorder, "item", lambda: recorder.read_number(may_decide=False))))
        for name, kind in (("__float__", float), ("__int__", int)):
            stack.enter_context(replaced(torch.Tensor, name, _ordinary(recorder, name, kind)))
        stack.enter_context(replaced(torch.Tensor, "__format__", _format))
        functions = {name: getattr(math, name) for name in FUNCTIONS_OF_NUMBERS if hasattr(math, name)}  # some are of later Pythons
        answering = {name: of_read_numbers(function) for name, function in functions.items()}
        for module, name, function in _names_of_script({id(function): name for name, function in functions.items()}):
            stack.enter_context(replaced(module, name, answering[function]))
        for name, function in answering.items():
            stack.enter_context(replaced(math, name, function))
        stack.enter_context(replaced(math, "isclose", close_to_read_numbers))
        stack.enter_context(replaced(torch.optim.LBFGS, "step", _all_iterations(torch.optim.LBFGS.step)))
        stack.enter_context(replaced(import_module("torch.optim.lbfgs"), "_strong_wolfe", _first_trial(recorder)))
        for name in ("__init__", "_validate_sample"):
            stack.enter_context(replaced(distribution, name, _valid(recorder, getattr(distribution, name))))
        for_users = getattr(sys.modules.get("transformers"), "PreTrainedModel", None)  # it reads the inputs for a warning alone
        stack.enter_context(replaced(for_users, "warn_if_padding_and_no_attention_mask", lambda *_: None))
        yield
