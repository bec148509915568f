"""Captures segmentors of OpenMMLab's model zoo whose backbones timm or transformers have as the same networks, with heads as mmseg
writes them (openmmlab_heads.py), and judges the memory that tbd-sim predicts for them by what PyTorch's allocator reported.

    python3 calibrate/runs/openmmlab.py --table runs.csv --program build/release/simulate/tbd-sim [--rows]

A quarter of the graphs (by md5 of `arch_key`) may be looked at one by one (--rows); of the others it prints aggregates alone.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from openmmlab_heads import AnnHead, DaHead, EmaHead, FcnHead, SegformerHead, UperHead, resized
from torch import nn
from vision_rows import is_fit

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import tbdsim

_MIB = 2.0**20


class Segmentor(nn.Module):
    """A backbone with its last maps as they are, or all of them in the size of the first, and heads."""

    def __init__(self, backbone: nn.Module, heads: list[nn.Module], joins: bool = False) -> None:
        super().__init__()
        self.backbone, self.heads, self.joins = backbone, nn.ModuleList(heads), joins

    def forward(self, images: torch.Tensor) -> list[torch.Tensor]:
        maps = self.backbone(images)
        if self.joins:
            maps = [torch.cat([maps[0], *(resized(m, maps[0]) for m in maps[1:])], dim=1)]
        return [scores for head in self.heads for scores in head(maps)]


class MixTransformer(nn.Module):
    """SegFormer's backbone as transformers has it: the same layers as mmseg's MixVisionTransformer."""

    def __init__(self, depths: list[int]) -> None:
        super().__init__()
        from transformers import SegformerConfig, SegformerModel

        config = SegformerConfig(depths=depths, hidden_sizes=[64, 128, 320, 512], drop_path_rate=0.1)
        self.layers = SegformerModel(config)

    def forward(self, images: torch.Tensor) -> list[torch.Tensor]:
        return list(self.layers(images, output_hidden_states=True).hidden_states)


#: Heads on ResNets of 50 and 101 layers, by the beginning of a config's name, and whether the last stages are dilated.
RESNET_HEADS = {
    "upernet": (lambda widths, classes: UperHead(widths, 512, classes), 32),
    "danet": (lambda widths, classes: DaHead(widths[-1], 512, classes), 8),
    "emanet": (lambda widths, classes: EmaHead(widths[-1], 256, classes), 8),
    "eemanet": (lambda widths, classes: EmaHead(widths[-1], 256, classes), 8),  # so is the config called
    "ann": (lambda widths, classes: AnnHead(widths, 512, classes), 8),
}

#: Layers of each stage of SegFormer's backbones.
MIX_TRANSFORMERS = {"b1": [2, 2, 2, 2], "b3": [3, 4, 18, 3], "b5": [3, 6, 40, 3]}


def build(name: str, classes: int) -> nn.Module | None:
    """Returns the network of a config's name; None for one that is not written here."""
    import timm

    if name.startswith(("fcn_r18-d8", "fcn_r18b-d8")):
        stem = "resnet18d" if name.startswith("fcn_r18-") else "resnet18"  # V1c has the deep stem
        backbone = timm.create_model(stem, features_only=True, output_stride=8, out_indices=(3, 4))
        return Segmentor(backbone, [FcnHead(512, 128, classes, 2, True), FcnHead(256, 64, classes, 1, False, of=-2)])
    if found := re.match(r"fcn_(hr18s|hr18|hr48)_", name):
        model = {"hr18s": "hrnet_w18_small_v2", "hr18": "hrnet_w18", "hr48": "hrnet_w48"}[found[1]]
        backbone = timm.create_model(model, features_only=True, feature_location="", out_indices=(1, 2, 3, 4))
        width = sum(48 * 2**i if found[1] == "hr48" else 18 * 2**i for i in range(4))
        return Segmentor(backbone, [FcnHead(width, width, classes, 1, False, kernel=1)], joins=True)
    if (found := re.match(r"(\w+?)_r(50|101)(-d8)?_", name)) and found[1] in RESNET_HEADS:
        head, stride = RESNET_HEADS[found[1]]
        deep_stem = {"stem_type": "deep", "stem_width": 32}  # ResNetV1c
        backbone = timm.create_model(
            f"resnet{found[2]}", features_only=True, output_stride=stride, out_indices=(1, 2, 3, 4), **deep_stem
        )
        return Segmentor(
            backbone, [head([256, 512, 1024, 2048], classes), FcnHead(1024, 256, classes, 1, False, of=-2)]
        )
    if found := re.match(r"segformer_mit-(b\d)_", name):
        return Segmentor(MixTransformer(MIX_TRANSFORMERS[found[1]]), [SegformerHead([64, 128, 320, 512], 256, classes)])
    return None


def capture(row: dict[str, str], file: Path) -> bool:
    """Writes the captured step of a row; false where the network cannot be built."""
    classes = int(re.search(r"classes=(\d+)", row["note"])[1])  # type: ignore[index]
    height, width = (int(n) for n in re.findall(r"\d+", row["image_size"]))
    with torch.device("meta"):
        model = build(row["model"], classes)
    if model is None:
        return False
    model.train()

    def loss(scores: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        parts = []
        for of_head in scores:
            full = nn.functional.interpolate(of_head, (height, width), mode="bilinear")
            parts.append(nn.functional.cross_entropy(full, targets, reduction="none").mean())
        return torch.stack(parts).sum()

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    adam = row["optimizer"].startswith("AdamW")
    optimizer = torch.optim.AdamW(trained) if adam else torch.optim.SGD(trained, lr=0.01, momentum=0.9)

    def train_step(batch: int):
        images = torch.empty(batch, 3, height, width, device="cuda")
        targets = torch.empty(batch, height, width, device="cuda", dtype=torch.int64)

        def step() -> None:
            optimizer.zero_grad()
            loss(model(images), targets).backward()
            optimizer.step()

        return step

    tbdsim.capture(train_step, precision="fp32").save(file)
    return True


def predicted_mib(program: Path, file: Path, row: dict[str, str], framework: str) -> float:
    """Returns what PyTorch's allocator has handed out at most: all but the context, and the gradients' buckets of data parallelism."""
    command = [program, "memory", "--model", file, "--gpu", "v100_sxm2_32gb", "--framework", framework, "--batch", row["batch_per_gpu"]]
    done = subprocess.run([*command, "--format", "csv"], capture_output=True, text=True, check=True)
    of = {line["category"]: float(line["bytes"]) for line in csv.DictReader(io.StringIO(done.stdout))}
    inside = sum(of.get(name, 0.0) for name in ("weights", "weight_gradients", "feature_maps", "workspace", "dynamic"))
    return (inside + of.get("weight_gradients", 0.0)) / _MIB


def report(errors: dict[str, list[float]]) -> None:
    """Prints the median, the mean and the bias of each part's errors."""
    for part, of in errors.items():
        if of:
            sizes = [abs(error) for error in of]
            print(
                f"{part}: {len(of)} rows, median {statistics.median(sizes):.1%}, mean {statistics.fmean(sizes):.1%}, "
                f"bias {statistics.fmean(of):+.1%}"
            )


def read_arguments(page: str) -> argparse.Namespace:
    """Returns the command line of a script whose docstring is `page`."""
    parser = argparse.ArgumentParser(description=page.splitlines()[0])
    parser.add_argument("--table", type=Path, required=True, help="runs.csv of the vision tables")
    parser.add_argument("--program", type=Path, required=True, help="tbd-sim")
    parser.add_argument("--framework", default="pytorch_1_8", help="the version that ran is not stated")
    parser.add_argument("--rows", action="store_true", help="print the rows of the fit quarter one by one")
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments(__doc__)
    errors: dict[str, list[float]] = {"fit": [], "score": []}
    skipped = 0
    with arguments.table.open(newline="") as table, tempfile.TemporaryDirectory() as folder:
        for row in csv.DictReader(table):
            if row["set"] != "mmseg_memory" or row["use"] != "score_memory" or row["precision"] != "fp32":
                continue
            file = Path(folder) / f"{row['id']}.step.json.gz"
            if not capture(row, file):
                skipped += 1
                continue
            # metafiles print thousands of MiB as GB
            error = predicted_mib(arguments.program, file, row, arguments.framework) / (1000 * float(row["value"])) - 1
            errors["fit" if is_fit(row) else "score"].append(error)
            if arguments.rows and is_fit(row):
                print(f"{row['model']:50} {row['value']:>6} GB {error:+.1%}")
    report(errors)
    print(f"{skipped} rows of other networks")


if __name__ == "__main__":
    main()
