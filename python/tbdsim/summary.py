"""Sums up a step: operators, parameters, multiply-adds and activations of each module."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .macs import multiply_adds
from .step import Step, size_at

#: Bytes of an element.
ELEMENT = {
    "f32": 4, "f16": 2, "bf16": 2, "f64": 8, "f8e4m3": 1, "f8e5m2": 1,
    "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "bool": 1, "c64": 8, "c128": 16,
}  # fmt: skip


def parameter_counts(step: Step) -> dict[str, int]:
    """Returns the number of weights of each parameter, by name: a complex one is one, as in `Tensor.numel`, though optimizers see two."""
    dtypes: dict[int, str] = {}
    for tensor in step.tensors:
        dtypes.setdefault(tensor.storage, tensor.dtype)  # later ones may be views of another type
    default = "f16" if step.precision == "pure_fp16" else "bf16" if step.precision == "pure_bf16" else "f32"
    return {
        storage.name: size_at(storage.bytes, 1) // ELEMENT[dtypes.get(i, default)]
        for i, storage in enumerate(step.storages)
        if storage.role == "parameter"
    }


@dataclass
class ModuleSummary:
    """A module, for one sample: its own part, without the modules in it.

    output: shape of what its last forward operator makes, at batch 1.
    operators: forward operators.
    parameters: weights.
    forward_macs, training_macs: multiply-adds of the forward pass, of the whole step.
    activation_bytes: what it makes in the forward pass and the backward pass reads again.
    """

    path: str
    kind: str
    output: tuple[int, ...] = ()
    operators: int = 0
    parameters: int = 0
    forward_macs: int = 0
    training_macs: int = 0
    activation_bytes: int = 0


@dataclass
class Summary:
    """A step for one sample (batch 1). Printing it gives a table."""

    title: str
    sample: str
    modules: list[ModuleSummary]
    operators: dict[str, int]
    phases: dict[str, int]
    warnings: list[str]

    @property
    def parameters(self) -> int:
        return sum(module.parameters for module in self.modules)

    @property
    def forward_macs(self) -> int:
        return sum(module.forward_macs for module in self.modules)

    @property
    def training_macs(self) -> int:
        return sum(module.training_macs for module in self.modules)

    @property
    def activation_bytes(self) -> int:
        return sum(module.activation_bytes for module in self.modules)

    def __str__(self) -> str:
        head = ("module", "class", "output", "operators", "parameters", "forward MAC", "training MAC", "activations")
        rows = [head] + [
            (
                module.path or "(model)",
                module.kind,
                "x".join(map(str, module.output[1:])),
                str(module.operators),
                f"{module.parameters:,}" if module.parameters else "",
                f"{module.forward_macs:,}" if module.forward_macs else "",
                f"{module.training_macs:,}" if module.training_macs else "",
                f"{module.activation_bytes:,}" if module.activation_bytes else "",
            )
            for module in self.modules
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        lines = [
            "  ".join(
                cell.ljust(width) if column < 3 else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths))
            ).rstrip()
            for row in rows
        ]
        totals = [
            f"parameters     {self.parameters:,}",
            f"forward_macs   {self.forward_macs:,} MAC",
            f"training_macs  {self.training_macs:,} MAC",
            f"activations    {self.activation_bytes:,} bytes kept for the backward pass",
            f"operators      {', '.join(f'{count} {phase}' for phase, count in self.phases.items())}",
        ]
        note = f"For one {self.sample}. MAC: a multiply-add, 2 flop; only convolutions and matrix products are counted."
        return "\n".join([self.title, "", *lines, "", *totals, *[f"warning: {warning}" for warning in self.warnings], "", note])


def summarize(step: Step) -> Summary:
    """Returns the sums of a step by module, in the order in which the modules first ran."""
    modules = [ModuleSummary(path, kind) for path, kind in step.modules]
    by_path = {module.path: module for module in modules}
    for name, count in parameter_counts(step).items():
        by_path.get(name.rpartition(".")[0], modules[0]).parameters += count
    backward = next((i for i, operator in enumerate(step.operators) if operator.phase == "backward"), len(step.operators))
    for storage in step.storages:
        if storage.role == "activation" and storage.made >= 0 and (storage.freed < 0 or storage.freed >= backward):
            modules[step.operators[storage.made].module].activation_bytes += size_at(storage.bytes, 1)
    for operator in step.operators:
        module = modules[operator.module]
        macs = multiply_adds(step, operator)
        module.training_macs += macs
        if operator.phase == "forward":
            module.operators += 1
            module.forward_macs += macs
            if operator.outputs and operator.outputs[0] >= 0:
                module.output = tuple(size_at(size, 1) for size in step.tensors[operator.outputs[0]].shape)
    return Summary(
        title=step.title,
        sample=step.sample,
        modules=[module for module in modules if module.operators or module.parameters or module.training_macs],
        operators=dict(Counter(operator.name for operator in step.operators)),
        phases=dict(Counter(operator.phase for operator in step.operators)),
        warnings=step.warnings,
    )
