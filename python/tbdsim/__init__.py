"""tbd-sim in Python: predicts the training of a network on any GPU, and captures a PyTorch training step without one.

`capture` needs PyTorch (`pip install tbdsim[capture]`), `Table.to_pandas` needs pandas; everything else needs neither.
"""

from __future__ import annotations

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

__all__ = [
    "CaptureError", "Row", "Step", "StepFileError", "Table", "TbdSimError", "capture", "compare", "doctor", "import_files",
    "kernels", "list_of", "load", "max_batch", "memory", "observations", "plan", "predict", "predict_runs", "report", "scaling",
    "serve", "show", "sweep", "trace", "tta", "validate", "whatif",
]


def __getattr__(name: str) -> Any:
    if name != "capture":
        raise AttributeError(f"module 'tbdsim' has no attribute '{name}'")
    try:
        from .capture_step import capture
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError("tbdsim.capture needs PyTorch: pip install tbdsim[capture]") from error
    globals()["capture"] = capture
    return capture
