"""tbd-sim in Python: captures a PyTorch training step without a GPU.

`capture` needs PyTorch (`pip install tbdsim[capture]`); reading and summing up step files does not.
"""

from __future__ import annotations

from typing import Any

from .errors import CaptureError, StepFileError
from .step import Step
from .step_file import load

__all__ = ["CaptureError", "Step", "StepFileError", "capture", "load"]


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
