"""Decode heads of mmsegmentation 1.2.2 as its code computes them (mmseg/models/decode_heads, read in the wheel of that version)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

Maps = Sequence[torch.Tensor]


def block(inputs: int, outputs: int, kernel: int, activates: bool = True, in_place: bool = True) -> nn.Sequential:
    """Returns mmcv's ConvModule: convolution, batch norm, ReLU."""
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=in_place)] if activates else []))


def resized(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return nn.functional.interpolate(x, like.shape[2:], mode="bilinear")


class Scores(nn.Module):
    """The end of each head: dropout, a score for each class."""

    def __init__(self, channels: int, classes: int, drops: bool = True) -> None:
        super().__init__()
        self.dropout = nn.Dropout2d(0.1) if drops else nn.Identity()
        self.scores = nn.Conv2d(channels, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scores(self.dropout(x))


class FcnHead(nn.Module):
    """fcn_head.py: convolutions, their result beside the input."""

    def __init__(
        self, inputs: int, channels: int, classes: int, convolutions: int, concatenates: bool, kernel: int = 3, of: int = -1
    ) -> None:
        super().__init__()
        widths = [inputs] + [channels] * convolutions
        self.convs = nn.Sequential(*(block(a, b, kernel) for a, b in zip(widths, widths[1:], strict=False)))
        self.joined = block(inputs + channels, channels, kernel) if concatenates else None
        self.scores = Scores(channels, classes)
        self.of = of

    def forward(self, maps: Maps) -> Maps:
        x = maps[self.of]
        y = self.convs(x)
        if self.joined is not None:
            y = self.joined(torch.cat([x, y], dim=1))
        return [self.scores(y)]


class UperHead(nn.Module):
    """uper_head.py: pooled pyramid of the last maps, top-down path through all of them."""

    def __init__(self, inputs: Sequence[int], channels: int, classes: int) -> None:
        super().__init__()
        pools = (1, 2, 3, 6)
        self.pyramid = nn.ModuleList(nn.Sequential(nn.AdaptiveAvgPool2d(p), block(inputs[-1], channels, 1)) for p in pools)
        self.bottleneck = block(inputs[-1] + len(pools) * channels, channels, 3)
        self.laterals = nn.ModuleList(block(n, channels, 1, in_place=False) for n in inputs[:-1])
        self.convs = nn.ModuleList(block(channels, channels, 3, in_place=False) for _ in inputs[:-1])
        self.joined = block(len(inputs) * channels, channels, 3)
        self.scores = Scores(channels, classes)

    def forward(self, maps: Maps) -> Maps:
        last = maps[-1]
        paths = [lateral(x) for lateral, x in zip(self.laterals, maps, strict=False)]
        paths.append(self.bottleneck(torch.cat([last, *(resized(pool(last), last) for pool in self.pyramid)], dim=1)))
        for i in range(len(paths) - 1, 0, -1):
            paths[i - 1] = paths[i - 1] + resized(paths[i], paths[i - 1])
        outputs = [conv(x) for conv, x in zip(self.convs, paths, strict=False)] + [paths[-1]]
        outputs = outputs[:1] + [resized(x, outputs[0]) for x in outputs[1:]]
        return [self.scores(self.joined(torch.cat(outputs, dim=1)))]


class SelfAttention(nn.Module):
    """utils/self_attention_block.py: pixels attend to pixels; keys and values may be pooled, queries and keys be one projection."""

    def __init__(
        self, keys: int, queries: int, channels: int, outputs: int, shared: bool, pools: Sequence[int], norms: bool
    ) -> None:
        super().__init__()
        make = block if norms else (lambda a, b, kernel: nn.Conv2d(a, b, kernel))
        self.key = make(keys, channels, 1)
        self.query = self.key if shared else make(queries, channels, 1)
        self.value = nn.Conv2d(keys, channels if norms else outputs, 1)
        self.out = nn.Conv2d(channels, outputs, 1) if norms else None
        self.pools = nn.ModuleList(nn.AdaptiveAvgPool2d(p) for p in pools)
        self.scale = channels**-0.5 if norms else None

    def _pooled(self, x: torch.Tensor) -> torch.Tensor:
        parts = [pool(x).flatten(2) for pool in self.pools]
        return torch.cat(parts, dim=2) if parts else x.flatten(2)

    def forward(self, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        query = self.query(queries).flatten(2).permute(0, 2, 1).contiguous()
        key, value = self._pooled(self.key(keys)), self._pooled(self.value(keys)).permute(0, 2, 1).contiguous()
        scores = torch.matmul(query, key)
        if self.scale is not None:
            scores = self.scale * scores
        context = torch.matmul(scores.softmax(dim=-1), value).permute(0, 2, 1).contiguous()
        context = context.reshape(queries.shape[0], -1, *queries.shape[2:])
        return context if self.out is None else self.out(context)


class DaHead(nn.Module):
    """da_head.py: attention among pixels beside attention among channels, a loss of each and of their sum."""

    def __init__(self, inputs: int, channels: int, classes: int) -> None:
        super().__init__()
        self.into = nn.ModuleList(block(inputs, channels, 3) for _ in range(2))
        self.out = nn.ModuleList(block(channels, channels, 3) for _ in range(2))
        self.pixels = SelfAttention(channels, channels, 64, channels, shared=False, pools=(), norms=False)
        self.gammas = nn.ParameterList(torch.zeros(()) for _ in range(2))
        self.scores = nn.ModuleList(Scores(channels, classes) for _ in range(3))

    @staticmethod
    def _among_channels(x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(2)
        energy = torch.bmm(flat, flat.permute(0, 2, 1))
        energy = energy.max(-1, keepdim=True)[0].expand_as(energy) - energy
        return torch.bmm(energy.softmax(dim=-1), flat).view(x.shape)

    def forward(self, maps: Maps) -> Maps:
        x = maps[-1]
        pixels, channels = (into(x) for into in self.into)
        pixels = self.out[0](self.gammas[0] * self.pixels(pixels, pixels) + pixels)
        first = self.scores[0](pixels)
        channels = self.out[1](self.gammas[1] * self._among_channels(channels) + channels)
        second = self.scores[1](channels)
        return [self.scores[2](pixels + channels), first, second]


class EmaHead(nn.Module):
    """ema_head.py: three steps of expectation and maximization over 64 bases, without gradients."""

    def __init__(self, inputs: int, channels: int, classes: int) -> None:
        super().__init__()
        width = 512
        self.into = block(inputs, width, 3)
        self.middle = nn.Conv2d(width, width, 1).requires_grad_(False)
        self.out = block(width, width, 1, activates=False)
        self.bottleneck = block(width, channels, 3)
        self.joined = block(inputs + channels, channels, 3)
        self.scores = Scores(channels, classes)
        self.register_buffer("bases", torch.zeros(1, width, 64))

    def _reconstructed(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(2)
        bases = self.bases.repeat(x.shape[0], 1, 1)
        with torch.no_grad():
            for _ in range(3):
                attention = torch.einsum("bcn,bck->bnk", flat, bases).softmax(dim=2)
                normed = nn.functional.normalize(attention, dim=1, p=1)
                bases = nn.functional.normalize(torch.einsum("bcn,bnk->bck", flat, normed), dim=1, p=2)
        return torch.einsum("bck,bnk->bcn", bases, attention).view(x.shape)

    def forward(self, maps: Maps) -> Maps:
        x = maps[-1]
        features = self.into(x)
        found = nn.functional.relu(self._reconstructed(self.middle(features)), inplace=True)
        y = nn.functional.relu(features + self.out(found), inplace=True)
        return [self.scores(self.joined(torch.cat([x, self.bottleneck(y)], dim=1)))]


class AnnHead(nn.Module):
    """ann_head.py: pixels attend to pooled maps, of the stage before and of their own."""

    def __init__(self, inputs: Sequence[int], channels: int, classes: int) -> None:
        super().__init__()
        low, high = inputs[-2:]
        pools = (1, 3, 6, 8)
        self.fusion = SelfAttention(low, high, 256, high, shared=False, pools=pools, norms=True)
        self.fused = block(2 * high, high, 1, activates=False)
        self.dropout = nn.Dropout2d(0.1)
        self.bottleneck = block(high, channels, 3)
        self.context = SelfAttention(channels, channels, 256, channels, shared=True, pools=pools, norms=True)
        self.joined = block(2 * channels, channels, 1)
        self.scores = Scores(channels, classes)

    def forward(self, maps: Maps) -> Maps:
        low, high = maps[-2:]
        prior = torch.stack([self.fusion(high, low)]).sum(dim=0)
        y = self.bottleneck(self.dropout(self.fused(torch.cat([prior, high], dim=1))))
        prior = torch.stack([self.context(y, y)]).sum(dim=0)
        return [self.scores(self.joined(torch.cat([prior, y], dim=1)))]


class SegformerHead(nn.Module):
    """segformer_head.py: all maps in one width and in the size of the first."""

    def __init__(self, inputs: Sequence[int], channels: int, classes: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(block(n, channels, 1) for n in inputs)
        self.fusion = block(channels * len(inputs), channels, 1)
        self.scores = Scores(channels, classes)

    def forward(self, maps: Maps) -> Maps:
        parts = [resized(conv(x), maps[0]) for conv, x in zip(self.convs, maps, strict=True)]
        return [self.scores(self.fusion(torch.cat(parts, dim=1)))]
