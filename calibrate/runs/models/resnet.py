"""ResNet with bottleneck blocks in its v1.5 form: the stride sits in the 3x3 convolution.

He et al., "Deep Residual Learning", arXiv 1512.03385; layer for layer torchvision's resnet50 and resnet101.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workload import Options, Supervised

EXPANSION = 4


class Bottleneck(nn.Module):
    def __init__(self, channels_in: int, width: int, stride: int) -> None:
        super().__init__()
        channels_out = width * EXPANSION
        self.conv1 = nn.Conv2d(channels_in, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, channels_out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(channels_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), nn.BatchNorm2d(channels_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        return F.relu(y + self.shortcut(x), inplace=True)


def stem() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, padding=1),
    )


def stage(channels_in: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    first = Bottleneck(channels_in, width, stride)
    rest = (Bottleneck(width * EXPANSION, width, 1) for _ in range(blocks - 1))
    return nn.Sequential(first, *rest)


class ResNet50(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.stem = stem()
        self.stage1 = stage(64, 64, 3, 1)
        self.stage2 = stage(256, 128, 4, 2)
        self.stage3 = stage(512, 256, 6, 2)
        self.stage4 = stage(1024, 512, 3, 2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(2048, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stage4(self.stage3(self.stage2(self.stage1(self.stem(x)))))
        return self.classifier(self.pool(x).flatten(1))


def _loss(network: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(network(images), labels)


def build(options: Options, batch: int, image: int = 224) -> Supervised:
    with options.device:
        network = ResNet50()
        inputs = (torch.randn(batch, 3, image, image), torch.randint(1000, (batch,)))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9, weight_decay=1e-4)
    return Supervised(network, optimizer, inputs, _loss, options)
