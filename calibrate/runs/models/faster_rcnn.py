"""Faster R-CNN on ResNet-101 (C4), trained end to end on one image.

Ren et al., arXiv 1506.01497, with the settings of MXNet's example: 9 anchors, 12000 proposals before and 2000 after
suppression, 128 regions, RoI pooling 14x14, stage 4 as the head; stem, stage 1 and all batch norms are frozen.
Non-maximum suppression and RoI pooling come from torchvision.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from errors import CannotRun
from models import boxes
from models.resnet import stage, stem
from workload import Options, Supervised

STRIDE = 16
ANCHORS = 9
CLASSES = 21
PROPOSALS_BEFORE = 12000
PROPOSALS_AFTER = 2000
RPN_SAMPLES = 256
REGION_SIZE = 14
OBJECTS = 4


class RegionProposals(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1024, 512, 3, padding=1)
        self.score = nn.Conv2d(512, 2 * ANCHORS, 1)
        self.offset = nn.Conv2d(512, 4 * ANCHORS, 1)
        for layer in (self.conv, self.score, self.offset):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """features of one image -> scores (cells * 9, 2), offsets (cells * 9, 4)"""
        x = F.relu(self.conv(features))
        scores = self.score(x)[0].permute(1, 2, 0).reshape(-1, 2)
        offsets = self.offset(x)[0].permute(1, 2, 0).reshape(-1, 4)
        return scores.float(), offsets.float()


class FasterRcnn(nn.Module):
    anchors: Tensor
    inside: Tensor

    def __init__(self, height: int, width: int, regions: int) -> None:
        super().__init__()
        self.height, self.width, self.regions = height, width, regions
        anchors = boxes.anchors(height, width, STRIDE)
        inside = (boxes.clip(anchors, height, width) == anchors).all(1)
        self.register_buffer("anchors", anchors, persistent=False)
        self.register_buffer("inside", inside, persistent=False)
        self.frozen = nn.Sequential(stem(), stage(64, 64, 3, 1))
        self.backbone = nn.Sequential(stage(256, 128, 4, 2), stage(512, 256, 23, 2))
        self.proposals = RegionProposals()
        self.head = nn.Sequential(stage(1024, 512, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(2048, CLASSES)
        self.regressor = nn.Linear(2048, 4 * CLASSES)
        nn.init.normal_(self.classifier.weight, std=0.01)
        nn.init.normal_(self.regressor.weight, std=0.001)
        self.frozen.requires_grad_(False)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.requires_grad_(False).eval()

    def forward(self, image: Tensor, objects: Tensor, labels: Tensor) -> Tensor:
        """image (1, 3, H, W), objects (n, 4) with their classes -> loss"""
        features = self.backbone(self.frozen(image))
        scores, offsets = self.proposals(features)
        with torch.no_grad():
            proposed = propose(self.anchors, scores, offsets, self.height, self.width)
        loss = proposal_loss(self.anchors, self.inside, scores, offsets, objects)
        return loss + self.region_loss(features, proposed, objects, labels)

    def region_loss(self, features: Tensor, proposed: Tensor, objects: Tensor, labels: Tensor) -> Tensor:
        from torchvision.ops import roi_pool

        regions, classes, targets = choose_regions(proposed, objects, labels, self.regions)
        pooled = roi_pool(features.float(), [regions], REGION_SIZE, 1 / STRIDE)  # has no bf16 kernel
        x = self.head(pooled)
        logits, offsets = self.classifier(x), self.regressor(x).unflatten(1, (CLASSES, 4))
        own = offsets[torch.arange(len(classes), device=classes.device), classes]
        foreground = (classes > 0).unsqueeze(1)
        box_loss = F.smooth_l1_loss(own * foreground, targets * foreground, reduction="sum") / len(classes)
        return F.cross_entropy(logits, classes) + box_loss


def propose(anchors: Tensor, scores: Tensor, offsets: Tensor, height: int, width: int) -> Tensor:
    from torchvision.ops import nms

    probability = torch.softmax(scores, 1)[:, 1]
    best, order = probability.topk(min(PROPOSALS_BEFORE, len(probability)))
    candidates = boxes.clip(boxes.decode(anchors[order], offsets[order]), height, width)
    return candidates[nms(candidates, best, 0.7)[:PROPOSALS_AFTER]]


def proposal_loss(anchors: Tensor, inside: Tensor, scores: Tensor, offsets: Tensor, objects: Tensor) -> Tensor:
    overlap = boxes.overlaps(anchors, objects)
    best, match = overlap.max(1)
    positive = best >= 0.7
    positive[overlap.argmax(0)] = True
    chosen = boxes.sample(positive, inside & ~positive & (best < 0.3), RPN_SAMPLES, 0.5)
    labels = positive[chosen]
    targets = boxes.encode(anchors[chosen], objects[match[chosen]])
    weight = labels.unsqueeze(1)
    box_loss = F.smooth_l1_loss(offsets[chosen] * weight, targets * weight, reduction="sum", beta=1 / 9)
    return F.cross_entropy(scores[chosen], labels.long()) + box_loss / RPN_SAMPLES


@torch.no_grad()
def choose_regions(proposed: Tensor, objects: Tensor, labels: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The sampled regions with their classes (0 is background) and box offsets."""
    candidates = torch.cat([proposed, objects])
    best, match = boxes.overlaps(candidates, objects).max(1)
    positive = best >= 0.5
    chosen = boxes.sample(positive, ~positive, count, 0.25)
    classes = torch.where(positive[chosen], labels[match[chosen]], 0)
    return candidates[chosen], classes, boxes.encode(candidates[chosen], objects[match[chosen]])


def _objects(height: int, width: int) -> Tensor:
    corner = torch.rand(OBJECTS, 2) * 0.5
    size = torch.rand(OBJECTS, 2) * 0.3 + 0.2
    return torch.cat([corner, corner + size], 1) * torch.tensor([width, height, width, height])


def _loss(network: nn.Module, image: Tensor, objects: Tensor, labels: Tensor) -> Tensor:
    return network(image, objects, labels)


def build(options: Options, batch: int, height: int = 600, width: int = 800, regions: int = 128) -> Supervised:
    if batch != 1:
        raise CannotRun("trains one image at a time; use batch 1")
    try:
        import torchvision.ops  # noqa: F401
    except (ImportError, RuntimeError) as error:
        raise CannotRun(f"needs torchvision for suppression and RoI pooling ({error})") from error
    with options.device:
        network = FasterRcnn(height, width, regions)
        inputs = (
            torch.randn(1, 3, height, width),
            _objects(height, width),
            torch.randint(1, CLASSES, (OBJECTS,)),
        )
    trained = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=1e-3, momentum=0.9, weight_decay=5e-4)
    return Supervised(network, optimizer, inputs, _loss, options, lambda p: nn.utils.clip_grad_value_(p, 5.0))
