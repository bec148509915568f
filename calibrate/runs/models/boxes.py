"""Boxes as (left, top, right, bottom) rows: anchors, overlaps, offsets, and the choice of training samples."""

from __future__ import annotations

import math

import torch
from torch import Tensor

MAX_LOG_SCALE = math.log(1000 / 16)
"""Keeps the exponential of an untrained regression finite."""


def anchors(height: int, width: int, stride: int) -> Tensor:
    """Nine boxes a cell (scales 8, 16, 32; ratios 0.5, 1, 2), cells row by row: (cells * 9, 4)"""
    rows, columns = -(-height // stride), -(-width // stride)
    scales = torch.tensor([8.0, 16.0, 32.0]) * stride
    ratios = torch.tensor([0.5, 1.0, 2.0]).sqrt()
    half_width = (scales[None] / ratios[:, None]).flatten() / 2
    half_height = (scales[None] * ratios[:, None]).flatten() / 2
    shapes = torch.stack([-half_width, -half_height, half_width, half_height], 1)
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    centres = (torch.stack([x, y, x, y], 2).float() + 0.5) * stride
    return (centres[:, :, None] + shapes).reshape(-1, 4)


def _split(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """centres and sizes"""
    size = boxes[:, 2:] - boxes[:, :2]
    return boxes[:, :2] + size / 2, size


def encode(boxes: Tensor, targets: Tensor) -> Tensor:
    centre, size = _split(boxes)
    target_centre, target_size = _split(targets)
    return torch.cat([(target_centre - centre) / size, torch.log(target_size / size)], 1)


def decode(boxes: Tensor, offsets: Tensor) -> Tensor:
    centre, size = _split(boxes)
    centre = centre + offsets[:, :2] * size
    half = size * torch.exp(offsets[:, 2:].clamp(max=MAX_LOG_SCALE)) / 2
    return torch.cat([centre - half, centre + half], 1)


def clip(boxes: Tensor, height: int, width: int) -> Tensor:
    x, y = boxes[:, 0::2].clamp(0, width), boxes[:, 1::2].clamp(0, height)
    return torch.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], 1)


def overlaps(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union of every pair: (len(a), len(b))"""
    corner1 = torch.maximum(a[:, None, :2], b[None, :, :2])
    corner2 = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    common = (corner2 - corner1).clamp(min=0).prod(2)
    area_a, area_b = (_split(boxes)[1].prod(1) for boxes in (a, b))
    return common / (area_a[:, None] + area_b[None] - common)


def sample(positive: Tensor, negative: Tensor, count: int, positive_share: float) -> Tensor:
    """Indices of `count` rows at random, at most the given share positive; repeats rows if there are too few."""
    positives = _shuffled(positive)[: int(count * positive_share)]
    negatives = _shuffled(negative)[: count - len(positives)]
    chosen = torch.cat([positives, negatives])
    return chosen[torch.arange(count, device=chosen.device) % len(chosen)]


def _shuffled(mask: Tensor) -> Tensor:
    rows = torch.where(mask)[0]
    return rows[torch.randperm(len(rows), device=rows.device)]
