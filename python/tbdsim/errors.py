"""Errors that a user can mend."""

from __future__ import annotations


class CaptureError(RuntimeError):
    """A training step cannot be captured; the message names the operator and its module, and says what to do."""


class StepFileError(ValueError):
    """A step file does not follow the format; the message names the file, the field and what was expected."""
