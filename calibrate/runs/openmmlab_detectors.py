"""Captures detectors of OpenMMLab's model zoo, made of timm's backbones and torchvision's heads, which have the same sizes, and judges
the memory that tbd-sim predicts for them by what PyTorch's allocator reported.

    python3 calibrate/runs/openmmlab_detectors.py --table runs.csv --program build/release/simulate/tbd-sim [--rows]

A quarter of the graphs (by md5 of `arch_key`) may be looked at one by one (--rows); of the others it prints aggregates alone.
"""

from __future__ import annotations

import csv
import re
import sys
import tempfile
import warnings
from pathlib import Path

import timm
import torch
from openmmlab import predicted_mib, read_arguments, report
from torch import nn
from torchvision.models.detection import FCOS, FasterRCNN, MaskRCNN, RetinaNet, fcos, retinanet, roi_heads
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.ops.feature_pyramid_network import FeaturePyramidNetwork, LastLevelMaxPool, LastLevelP6P7
from vision_rows import is_fit

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import tbdsim

#: timm's backbones by how mmdet's configs call them.
BACKBONES = {
    "r18": "resnet18",
    "r50": "resnet50",
    "r50-caffe": "resnet50",
    "r101": "resnet101",
    "r101-caffe": "resnet101",
    "x101-32x4d": "resnext101_32x4d",
    "x101-32x8d": "resnext101_32x8d",
    "x101-64x4d": "resnext101_64x4d",
    "res2net-101": "res2net101_26w_4s",
    "regnetx-400MF": "regnetx_004",
    "regnetx-800MF": "regnetx_008",
    "regnetx-1.6GF": "regnetx_016",
    "regnetx-3.2GF": "regnetx_032",
    "regnetx-4GF": "regnetx_040",
}
#: What follows the backbone in the names of configs that differ from the plain one in schedule and augmentation alone.
SCHEDULES = r"(1x|2x|3x|ms-3x|ms-poly-1x|ms-poly-3x|1xb8-1x|gn-head-1x|gn-head_ms-640-800-2x|instaboost-4x)"
HEIGHT, WIDTH = 800, 1333
#: About as many as the fullest images of COCO have: the table's memory is the largest of a whole training.
OBJECTS = 93


def _focal_loss(scores: torch.Tensor, targets: torch.Tensor, *_: object, reduction: str = "none", **__: object) -> torch.Tensor:
    """mmcv's focal loss is one kernel, which saves scores and targets: as the cross entropy is."""
    loss = nn.functional.binary_cross_entropy_with_logits(scores, targets, reduction="none")
    return loss.sum() if reduction == "sum" else loss


def _masks_of_the_host(masks: torch.Tensor, boxes: torch.Tensor, _: torch.Tensor, size: int) -> torch.Tensor:
    """mmdet cuts masks out on the host and copies them."""
    return torch.zeros(boxes.shape[0], size, size, device="cpu").cuda()


def _found(of_images: list[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the quarter of an image's regions that may show an object: masks are computed of these alone."""
    return [regions[: regions.shape[0] // 4] for regions in of_images]


class MaskPool(nn.Module):
    """Regions for the mask head. Captured with the largest sizes, all sampled regions show an object."""

    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        self.pool = pool

    def forward(self, maps: dict[str, torch.Tensor], regions: list[torch.Tensor], sizes: list[tuple[int, int]]) -> torch.Tensor:
        return self.pool(maps, _found(regions), sizes)


_mask_loss = roi_heads.maskrcnn_loss


def _loss_of_found(scores: torch.Tensor, regions: list[torch.Tensor], masks: object, labels: object, of: list[torch.Tensor]):
    return _mask_loss(scores, _found(regions), masks, labels, _found(of))


class Backbone(nn.Module):
    """A backbone of timm and a feature pyramid over its last maps; stem and first stage are frozen, statistics of norms fixed."""

    def __init__(self, name: str, levels: tuple[int, ...], extra: object) -> None:
        super().__init__()
        self.body = timm.create_model(name, features_only=True, out_indices=levels)
        channels = self.body.feature_info.channels()
        self.fpn = FeaturePyramidNetwork(channels, 256, extra(channels[-1]))
        self.out_channels = 256
        for key, part in self.body.named_children():
            if key in ("conv1", "bn1", "layer1", "stem", "s1"):
                part.requires_grad_(False)

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        return self.fpn({str(i): level for i, level in enumerate(self.body(images))})


def build(name: str) -> nn.Module | None:
    """Returns the detector of a config's name; None for one that is not written here."""
    found = re.fullmatch(rf"(retinanet|faster-rcnn|mask-rcnn|fcos)_(.+)_fpn_{SCHEDULES}_coco", name)
    if found is None or found[2] not in BACKBONES:
        return None
    kind, backbone = found[1], BACKBONES[found[2]]
    sizes = {"min_size": HEIGHT, "max_size": WIDTH, "num_classes": 80}
    if kind in ("retinanet", "fcos"):
        body = Backbone(backbone, (2, 3, 4), lambda channels: LastLevelP6P7(channels if kind == "retinanet" else 256, 256))
        if kind == "fcos":
            return FCOS(body, **sizes)
        octaves = tuple((x, int(x * 2 ** (1 / 3)), int(x * 2 ** (2 / 3))) for x in (32, 64, 128, 256, 512))
        return RetinaNet(body, anchor_generator=AnchorGenerator(octaves, ((0.5, 1.0, 2.0),) * 5), **sizes)
    body = Backbone(backbone, (1, 2, 3, 4), lambda _: LastLevelMaxPool())
    sizes |= {"num_classes": 81, "rpn_post_nms_top_n_train": 1000}  # with one of the background
    if kind == "faster-rcnn":
        return FasterRCNN(body, **sizes)
    model = MaskRCNN(body, **sizes)
    model.roi_heads.mask_roi_pool = MaskPool(model.roi_heads.mask_roi_pool)
    return model


def capture(row: dict[str, str], file: Path) -> bool:
    """Writes the captured step of a row at its batch; false where the network cannot be built."""
    with torch.device("meta"):
        model = build(row["model"])
    if model is None:
        return False
    model.train()
    for part in model.backbone.body.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eval().requires_grad_(any(p.requires_grad for p in part.parameters()) and "caffe" not in row["model"])
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.02, momentum=0.9)

    def train_step(batch: int):
        images = [torch.empty(3, HEIGHT, WIDTH, device="cuda") for _ in range(batch)]
        targets = [
            {
                "boxes": torch.empty(OBJECTS, 4, device="cuda"),
                "labels": torch.empty(OBJECTS, dtype=torch.int64, device="cuda"),
                "masks": torch.empty(OBJECTS, 1, 1, dtype=torch.uint8, device="cuda"),
            }
            for _ in range(batch)
        ]

        def step() -> None:
            optimizer.zero_grad()
            sum(model(images, targets).values()).backward()
            optimizer.step()

        return step

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tbdsim.capture(
            train_step, precision="fp32", batches=[int(row["batch_per_gpu"])], assumed_value=0, largest_sizes=True
        ).save(file)
    return True


def main() -> None:
    arguments = read_arguments(__doc__)
    retinanet.sigmoid_focal_loss = fcos.sigmoid_focal_loss = _focal_loss
    roi_heads.project_masks_on_boxes, roi_heads.maskrcnn_loss = _masks_of_the_host, _loss_of_found
    errors: dict[str, list[float]] = {"fit": [], "score": []}
    with arguments.table.open(newline="") as table, tempfile.TemporaryDirectory() as folder:
        for row in csv.DictReader(table):
            if row["set"] != "mmdet_memory" or row["use"] != "score_memory" or row["precision"] != "fp32":
                continue
            file = Path(folder) / f"{row['id']}.step.json.gz"
            if not capture(row, file):
                continue
            # metafiles print thousands of MiB as GB
            error = predicted_mib(arguments.program, file, row, arguments.framework) / (1000 * float(row["value"])) - 1
            errors["fit" if is_fit(row) else "score"].append(error)
            if not is_fit(row):
                errors.setdefault(f"score {row['family']}", []).append(error)
            if arguments.rows and is_fit(row):
                print(f"{row['model']:50} {row['value']:>6} GB {error:+.1%}")
    report({part: of for part, of in errors.items() if " " not in part or len(of) > 2})  # no single score rows


if __name__ == "__main__":
    main()
