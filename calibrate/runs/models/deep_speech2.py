"""Deep Speech 2: two convolutions over the spectrogram, two stacks of five GRU layers, CTC.

Amodei et al., arXiv 1512.02595, in the shape of MXNet's speech_recognition example: a forward and a backward stack
of 1760 units, joined only at the top. The stacks are PyTorch's fused GRU, which has no batch norm between layers;
MXNet's unrolled cells normalise the input gates of every layer (70,400 parameters more).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workload import Options, Supervised

BINS = 161
BLANK = 28
CHANNELS = 32


class DeepSpeech2(nn.Module):
    def __init__(self, units: int, layers: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, CHANNELS, (11, 41), (2, 2), bias=False)
        self.bn1 = nn.BatchNorm2d(CHANNELS)
        self.conv2 = nn.Conv2d(CHANNELS, CHANNELS, (11, 21), (1, 2), bias=False)
        self.bn2 = nn.BatchNorm2d(CHANNELS)
        features = CHANNELS * 21
        self.forward_stack = nn.GRU(features, units, layers)
        self.backward_stack = nn.GRU(features, units, layers)
        self.join = nn.Linear(2 * units, units, bias=False)
        self.join_bn = nn.BatchNorm1d(units)
        self.classifier = nn.Linear(units, BLANK + 1)

    def forward(self, spectrogram: Tensor) -> Tensor:
        """spectrogram (N, 1, frames, bins) -> logits (steps, N, labels)"""
        x = self.bn1(F.relu(self.conv1(spectrogram)))
        x = self.bn2(F.relu(self.conv2(x)))
        x = x.permute(2, 0, 1, 3).flatten(2)
        ahead, _ = self.forward_stack(x)
        behind, _ = self.backward_stack(x.flip(0))
        x = self.join(torch.cat([ahead, behind.flip(0)], 2))
        steps, batch, _ = x.shape
        x = F.relu(self.join_bn(x.flatten(0, 1)))
        return self.classifier(x).unflatten(0, (steps, batch))


def _loss(network: nn.Module, spectrogram: Tensor, labels: Tensor) -> Tensor:
    scores = F.log_softmax(network(spectrogram).float(), 2)
    steps, batch, _ = scores.shape
    return F.ctc_loss(scores, labels, (steps,) * batch, (labels.shape[1],) * batch, blank=BLANK)


def build(
    options: Options,
    batch: int,
    frames: int = 1500,
    units: int = 1760,
    layers: int = 5,
    label_length: int = 200,
) -> Supervised:
    with options.device:
        network = DeepSpeech2(units, layers)
        inputs = (torch.randn(batch, 1, frames, BINS), torch.randint(BLANK, (batch, label_length)))
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9)
    return Supervised(network, optimizer, inputs, _loss, options, lambda p: nn.utils.clip_grad_value_(p, 100.0))
