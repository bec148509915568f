"""Inception-v3 with its auxiliary head trained (weight 0.4).

Szegedy et al., "Rethinking the Inception Architecture", arXiv 1512.00567; layer for layer torchvision's
inception_v3: batch norm with scale and shift, average pooling in both final blocks, dropout 0.5.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workload import Options, Supervised

Size = int | tuple[int, int]


class ConvNormRelu(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, kernel: Size, stride: int = 1, padding: Size = 0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(channels_out, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(x)), inplace=True)


class Branches(nn.Module):
    """Runs every branch on the same input and concatenates the channels."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def pooled(channels_in: int, channels_out: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, 1, padding=1), ConvNormRelu(channels_in, channels_out, 1))


def block_35(channels: int, pool: int) -> Branches:
    return Branches(
        ConvNormRelu(channels, 64, 1),
        nn.Sequential(ConvNormRelu(channels, 48, 1), ConvNormRelu(48, 64, 5, padding=2)),
        nn.Sequential(
            ConvNormRelu(channels, 64, 1),
            ConvNormRelu(64, 96, 3, padding=1),
            ConvNormRelu(96, 96, 3, padding=1),
        ),
        pooled(channels, pool),
    )


def reduce_35_to_17(channels: int) -> Branches:
    return Branches(
        ConvNormRelu(channels, 384, 3, 2),
        nn.Sequential(ConvNormRelu(channels, 64, 1), ConvNormRelu(64, 96, 3, padding=1), ConvNormRelu(96, 96, 3, 2)),
        nn.MaxPool2d(3, 2),
    )


def block_17(middle: int) -> Branches:
    row: dict[str, Size] = {"kernel": (1, 7), "padding": (0, 3)}
    column: dict[str, Size] = {"kernel": (7, 1), "padding": (3, 0)}

    def conv(channels_in: int, channels_out: int, shape: dict[str, Size]) -> ConvNormRelu:
        return ConvNormRelu(channels_in, channels_out, kernel=shape["kernel"], padding=shape["padding"])

    return Branches(
        ConvNormRelu(768, 192, 1),
        nn.Sequential(ConvNormRelu(768, middle, 1), conv(middle, middle, row), conv(middle, 192, column)),
        nn.Sequential(
            ConvNormRelu(768, middle, 1),
            conv(middle, middle, column),
            conv(middle, middle, row),
            conv(middle, middle, column),
            conv(middle, 192, row),
        ),
        pooled(768, 192),
    )


def reduce_17_to_8() -> Branches:
    return Branches(
        nn.Sequential(ConvNormRelu(768, 192, 1), ConvNormRelu(192, 320, 3, 2)),
        nn.Sequential(
            ConvNormRelu(768, 192, 1),
            ConvNormRelu(192, 192, (1, 7), padding=(0, 3)),
            ConvNormRelu(192, 192, (7, 1), padding=(3, 0)),
            ConvNormRelu(192, 192, 3, 2),
        ),
        nn.MaxPool2d(3, 2),
    )


def block_8(channels: int) -> Branches:
    def split() -> Branches:
        return Branches(ConvNormRelu(384, 384, (1, 3), padding=(0, 1)), ConvNormRelu(384, 384, (3, 1), padding=(1, 0)))

    return Branches(
        ConvNormRelu(channels, 320, 1),
        nn.Sequential(ConvNormRelu(channels, 384, 1), split()),
        nn.Sequential(ConvNormRelu(channels, 448, 1), ConvNormRelu(448, 384, 3, padding=1), split()),
        pooled(channels, 192),
    )


class InceptionV3(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.to_17 = nn.Sequential(
            ConvNormRelu(3, 32, 3, 2),
            ConvNormRelu(32, 32, 3),
            ConvNormRelu(32, 64, 3, padding=1),
            nn.MaxPool2d(3, 2),
            ConvNormRelu(64, 80, 1),
            ConvNormRelu(80, 192, 3),
            nn.MaxPool2d(3, 2),
            block_35(192, 32),
            block_35(256, 64),
            block_35(288, 64),
            reduce_35_to_17(288),
            *(block_17(middle) for middle in (128, 160, 160, 192)),
        )
        self.auxiliary = nn.Sequential(
            nn.AvgPool2d(5, 3), ConvNormRelu(768, 128, 1), ConvNormRelu(128, 768, 5), nn.AdaptiveAvgPool2d(1)
        )
        self.auxiliary_classifier = nn.Linear(768, classes)
        self.to_8 = nn.Sequential(reduce_17_to_8(), block_8(1280), block_8(2048))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.5)
        self.classifier = nn.Linear(2048, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.to_17(x)
        auxiliary = self.auxiliary_classifier(self.auxiliary(x).flatten(1))
        x = self.dropout(self.pool(self.to_8(x)))
        return self.classifier(x.flatten(1)), auxiliary


def _loss(network: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    logits, auxiliary = network(images)
    return F.cross_entropy(logits, labels) + 0.4 * F.cross_entropy(auxiliary, labels)


def build(options: Options, batch: int, image: int = 299) -> Supervised:
    with options.device:
        network = InceptionV3()
        inputs = (torch.randn(batch, 3, image, image), torch.randint(1000, (batch,)))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9, weight_decay=1e-4)
    return Supervised(network, optimizer, inputs, _loss, options)
