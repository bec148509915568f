"""tbd-sim in Python: predicts the training of a network on any GPU, and captures a PyTorch training step without one.

`capture` and `capture_config` need PyTorch (`pip install tbdsim[capture]`), `Table.to_pandas` needs pandas; everything else needs neither.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from .command_line import TbdSimError
from .commands import (compare, doctor, import_files, kernels, list_of, max_batch, memory, observations, plan, predict,
                       predict_runs, report, scaling, serve, show, sweep, trace, tta, validate, whatif)
from .errors import CaptureError, StepFileError
from .step import Step
from .step_file import load
from .tables import Row, Table

if TYPE_CHECKING:
    from .capture_step import capture
    from .hugging_face import capture_config

__all__ = [
    "CaptureError", "Row", "Step", "StepFileError", "Table", "TbdSimError", "capture", "capture_config", "compare", "doctor",
    "import_files", "kernels", "list_of", "load", "max_batch", "memory", "observations", "plan", "predict", "predict_runs", "report", "scaling",
    "serve", "show", "sweep", "trace", "tta", "validate", "whatif",
]


try:
    __version__ = version("tbdsim")
except PackageNotFoundError:  # a folder on the path that pip did not install
    __version__ = "unknown"

#: What needs PyTorch is imported when it is asked for: its name and module.
_CAPTURES = {"capture": "capture_step", "capture_config": "hugging_face"}


def __getattr__(name: str) -> Any:
    if name not in _CAPTURES:
        raise AttributeError(f"module 'tbdsim' has no attribute '{name}'")
    try:
        found = getattr(import_module(f".{_CAPTURES[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"tbdsim.{name} needs PyTorch: pip install tbdsim[capture]") from error
    globals()[name] = found
    return found
