"""Captures a training step without a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch

from .drawn_masks import DrawnMasks
from .environment import cuda_environment
from .errors import CaptureError
from .known_values import KnownValues, ValuesFollowed
from .losses import LossSource
from .meta import map_tensors
from .optimizers import OptimizerSource
from .record import Trained, Values, record
from .read_number import STAND_INS
from .recording import Recording
from .shapes import Shapes
from .sizes import Merged, merge
from .step import Step
from .training import ModelTraining, Options

#: Two batches give each size as a + b x batch; the third checks them.
BATCHES = (2, 3, 5)


def capture(
    model: torch.nn.Module | Callable[..., Any],
    inputs: Any = None,
    *,
    loss: LossSource = None,
    optimizer: OptimizerSource = None,
    precision: str = "fp32",
    channels_last: bool = False,
    batch_axis: int = 0,
    targets: Any = None,
    gradient_scaler: bool | None = None,
    clip_norm: float | None = None,
    set_to_none: bool = True,
    assumed_value: float | None = None,
    largest_sizes: bool | float = False,
    name: str = "",
    title: str = "",
    sample: str = "",
    length: int | None = None,
    batches: Sequence[int] = BATCHES,
) -> Step:
    """Returns one training step of a model, recorded operator by operator on shapes alone: no GPU, no values, seconds.

    Two forms. `capture(model, inputs, ...)` makes the usual step of a model: gradients zeroed, forward pass, loss, backward pass,
    gradient scaling and clipping, optimizer. `capture(train_step)` takes your own: `train_step(batch)` is called on the device
    "meta", builds model, optimizer and data of that batch, and returns a callable without arguments that runs one step. Write both
    as for a GPU: "cuda" stands for "meta" in them. The model may be larger than this machine's memory.

    model: a module (left as it is), or a callable that builds one (called on "meta", so that weights take no memory).
    inputs: example tensors for the model, real or on "meta" (a tuple or list of positional, a dict of named arguments), or a
        callable of the batch that returns them. Tensors are given the batch along `batch_axis`.
    loss: "cross_entropy", "mse", "l1", "bce_with_logits", "mean" or "sum" of the output, a callable of the output (and of
        `targets`), or None where the model returns its loss, as those of `transformers` do when they get labels.
    optimizer: "sgd", "momentum", "nesterov", "adam", "adamw", "fused_adam", ..., an optimizer of your own, or a callable of the
        parameters; None: no update.
    precision: "fp32", "tf32", "fp16" or "bf16" (autocast), "pure_fp16" or "pure_bf16" (the parameters are half).
    channels_last: puts the model and four-dimensional inputs into that memory format.
    targets: further example tensors, one or a tuple, that the callable `loss` gets behind the output, given the batch like `inputs`.
    gradient_scaler: scales the loss; None: where the precision is "fp16".
    clip_norm: clips the norm of all gradients to this.
    set_to_none: whether zeroed gradients are freed, PyTorch's default since 2.0, or filled with zeros.
    assumed_value: what `.item()`, `if tensor:` and the like give, each with a warning; None: they are errors, but for `.item()`,
        `float(tensor)` and `.cpu()` of numbers that are printed, added up, kept, or compared where the step runs alike for different ones.
    largest_sizes: what `nonzero`, indexing by a condition and non-maximum suppression give is as large as it can be, each with a
        warning; a number between 0 and 1: that share of it, as 0.25 where each of four experts gets a quarter; False: they are errors.
    name, title: of the model, for tables; by default the class.
    sample: what a batch counts, singular; "image" for four-dimensional inputs, "sequence" for token numbers, else "sample".
    length: tokens or frames of a sample, 0: none; by default the second size of token numbers.
    batches: batch sizes at which the step is recorded: at two to tell what grows with the batch, at the others to check. One alone,
        as of detectors, which loop over images: the step is then known at that batch only.

    Raises CaptureError, which names operator and module, where values decide what runs (`.item()`, `nonzero`, boolean indexing),
    where PyTorch cannot tell an operator's shapes, and where a size is no a + b x batch.
    """
    batches = tuple(batches)
    if len(batches) in (0, 2) or len(set(batches)) != len(batches) or any(type(batch) is not int or batch < 1 for batch in batches):
        raise ValueError(f"batches is {batches}: expected three or more different whole numbers from 1, or one")
    if not 0 <= largest_sizes <= 1:
        raise ValueError(f"largest_sizes is {largest_sizes}: expected True, False, or a share between 0 and 1")
    options = Options(loss, optimizer, precision, channels_last, batch_axis, targets, gradient_scaler, clip_norm, set_to_none)
    with cuda_environment():
        own = inputs is None and not isinstance(model, torch.nn.Module)
        values = Values(KnownValues(), assumed_value, largest_sizes, drawn=DrawnMasks())
        with ValuesFollowed(values.known, values.assumed_value):
            training = None if own else ModelTraining(model, inputs, options)
        build, module = (_on_meta(model), None) if training is None else (training, training.model)
        recordings, merged = _merged(build, module, batches, values)
    read = list(dict.fromkeys(where for recording in recordings for where in recording.read))
    alike = [f"{where}: it reads numbers from the GPU; others stand for them in each recording, and the step runs alike" for where in read]
    kind = recordings[0].modules[0][1]
    found_sample, found_length = _sample(training, batches[0])
    return Step(
        name=name or kind,
        title=title or name or kind,
        sample=sample or found_sample,
        length=found_length if length is None else length,
        precision=precision,
        channels_last=channels_last,
        captured_with={"torch": torch.__version__.split("+")[0], "batches": list(batches)},
        modules=recordings[0].modules,
        storages=merged.storages,
        tensors=merged.tensors,
        operators=merged.operators,
        warnings=_warned([*(warning for recording in recordings for warning in recording.warnings), *alike, *merged.warnings]),
    )


def _merged(
    build: Callable[[int], Any], module: torch.nn.Module | None, batches: Sequence[int], values: Values
) -> tuple[list[Recording], Merged]:
    """Returns the recordings and the step that they make, with masks that are drawn on the host as even as they have to be."""
    recordings = _record(build, module, batches, values)
    try:
        return recordings, merge(recordings, batches)
    except CaptureError as error:
        if values.drawn is not None and values.drawn.met and not values.drawn.even:
            with suppress(CaptureError):  # then the first error says more
                evened, merged = _merged(build, module, batches, values._replace(drawn=DrawnMasks(even=True)))
                even = f"each sample has as many of their numbers as the mean one at batch {batches[0]}"
                merged.warnings.append(f"masks are drawn on the host: {even}")
                return evened, merged
        read = [where for recording in recordings for where in recording.read]
        if read:
            raise CaptureError(f"{error}; or the step decides by a number that it reads from the GPU: {read[0]}") from error
        raise


def _record(
    train_step: Callable[[int], Any], module: torch.nn.Module | None, batches: Sequence[int], values: Values
) -> list[Recording]:
    """Returns a recording at each batch. A model that is new, as those of `train_step` are, is trained for a step first, so that
    gradients and state exist."""
    recordings: list[Recording] = []
    may_compare = len(batches) > 1 and values.assumed_value is None
    shapes, trained = Shapes(), None
    for i, batch in enumerate(batches):
        if values.drawn is not None:
            values.drawn.batch = batch
        values = values._replace(stand_in=STAND_INS[i % len(STAND_INS)] if may_compare else None)
        with ValuesFollowed(values.known, values.assumed_value):
            step = train_step(batch)
        if not callable(step):
            raise CaptureError(
                f"train_step({batch}) returned {type(step).__name__}: expected a callable that runs one step; "
                "build model, optimizer and data in train_step, and return a function that uses them"
            )
        recording = record(step, trained, shapes, values) if trained is not None and module is not None else None
        if recording is None:
            trained = Trained(step, module, shapes, values)
            recording = record(step, trained, shapes, values)
        if recording is None:
            raise CaptureError(
                "the step makes a new model or optimizer whenever it runs: build them in train_step, outside of the step"
            )
        recordings.append(recording)
    return recordings


def _on_meta(train_step: Callable[[int], Any]) -> Callable[[int], Any]:
    def build(batch: int) -> Any:
        with torch.device("meta"):
            return train_step(batch)

    return build


def _sample(training: ModelTraining | None, batch: int) -> tuple[str, int]:
    """Returns what a sample is and how long, by the first input."""
    tensors: list[torch.Tensor] = []
    if training is not None:
        map_tensors(training.batch_of(training.inputs, batch), tensors.append)
    if tensors and tensors[0].dim() == 4:
        return "image", 0
    if tensors and tensors[0].dim() == 2 and not tensors[0].is_floating_point():
        return "sequence", tensors[0].shape[1]
    return "sample", 0


def _warned(found: Sequence[str]) -> list[str]:
    """Gives each warning once, and returns them."""
    different = list(dict.fromkeys(found))
    for warning in different:
        warnings.warn(warning, stacklevel=3)
    return different
