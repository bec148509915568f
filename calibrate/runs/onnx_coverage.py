"""Exports networks of timm, torchvision and transformers to ONNX and imports them with tbd-sim: which of them are
read, and whether parameters and multiply-adds are those that PyTorch counts.

    python onnx_coverage.py --tbd-sim build/release/simulate/tbd-sim timm:resnet50 torchvision:vit_b_16 transformers:Bert

Needs torch, onnx (onnxscript for --dynamo) and the libraries that are named. Weights are drawn anew before the export:
exporters merge tensors of equal values, as fresh biases are, and drop those that are zero.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

SMALL = {"vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
DECODER = {**SMALL, "num_key_value_heads": 2, "use_cache": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TRANSFORMERS = {
    "Bert": ("ForSequenceClassification", SMALL),
    "Roberta": ("ForMaskedLM", SMALL),
    "Electra": ("ForSequenceClassification", {**SMALL, "embedding_size": 32}),
    "GPT2": ("LMHeadModel", {"vocab_size": 1000, "n_embd": 64, "n_layer": 2, "n_head": 4, "use_cache": False}),
    "Llama": ("ForCausalLM", DECODER),
    "Mistral": ("ForCausalLM", DECODER),
    "Qwen2": ("ForCausalLM", DECODER),
}


class FirstOutput(torch.nn.Module):
    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.model(x)
        y = y.to_tuple() if hasattr(y, "to_tuple") else y
        while not torch.is_tensor(y):
            y = next(iter(y.values())) if isinstance(y, dict) else y[0]
        return y


def network(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    library, _, which = name.partition(":")
    if library == "timm":
        import timm

        model = timm.create_model(which, pretrained=False)
        return model, torch.randn(2, *model.pretrained_cfg.get("input_size", (3, 224, 224)))
    if library == "torchvision":
        import torchvision

        return torchvision.models.get_model(which, weights=None), torch.randn(2, 3, 224, 224)
    import transformers

    head, sizes = TRANSFORMERS[which]
    model = getattr(transformers, which + head)(getattr(transformers, which + "Config")(**sizes))
    return model, torch.randint(1, 900, (2, 32))


def used_parameters(model: torch.nn.Module, x: torch.Tensor) -> int:
    """Elements of the parameters that the first output depends on: an export leaves the others out."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(model(x).float().sum(), parameters, allow_unused=True)
    return sum(p.numel() for p, gradient in zip(parameters, gradients) if gradient is not None)


def export(model: torch.nn.Module, x: torch.Tensor, file: Path, options: argparse.Namespace) -> None:
    if options.dynamo:
        shapes = ({0: torch.export.Dim.DYNAMIC},) if options.named_batch else None
        torch.onnx.export(model, (x,), file, dynamo=True, external_data=False, opset_version=max(options.opset, 18),
                          dynamic_shapes=shapes, optimize=not options.not_optimized)
        return
    axes = {"x": {0: "batch"}} if options.named_batch else None
    mode = torch.onnx.TrainingMode.TRAINING
    torch.onnx.export(model.train(), (x,), str(file), dynamo=False, opset_version=options.opset, training=mode,
                      do_constant_folding=False, input_names=["x"], dynamic_axes=axes)


def tool(*arguments: object) -> str:
    run = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip().splitlines()[-1])
    return run.stdout


def row(name: str, folder: Path, options: argparse.Namespace) -> str:
    model, x = network(name)
    model = FirstOutput(model).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.01)
        with FlopCounterMode(display=False) as counter:
            model(x)
        file = folder / (name.replace(":", "_") + ".onnx")
        export(model, x, file, options)
    imported = tool(options.tbd_sim, "import", file, "-o", folder)
    yaml = imported.split("wrote ")[1].split()[0]
    totals = json.loads(tool(options.tbd_sim, "show", yaml, "--format", "json"))["totals"][0]
    for batch in (4, 16):
        tool(options.tbd_sim, "--model", yaml, "--framework", "pytorch", "--gpu", "rtx3090", "--batch", batch)
    parameters = used_parameters(model, x)
    macs = counter.get_total_flops() / 2 / x.shape[0]
    return f"parameters {totals['parameters'] - parameters:+d} of {parameters}, MAC {100 * (totals['forward_macs'] / macs - 1):+.2f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--tbd-sim", default="tbd-sim")
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--dynamo", action="store_true")
    parser.add_argument("--named-batch", action="store_true")
    parser.add_argument("--not-optimized", action="store_true", help="of --dynamo: nothing is folded")
    options = parser.parse_args()
    torch.backends.mha.set_fastpath_enabled(False)  # one operator whose products the counter does not see
    for name in options.networks:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(name, row(name, Path(folder), options), sep="\t", flush=True)
            except Exception as wrong:  # the next network is another matter
                print(name, f"refused: {wrong}".splitlines()[0][:300], sep="\t", flush=True)


if __name__ == "__main__":
    main()
