"""Transformer base as tensor2tensor 1.2.7 trains it: pre-norm, biases in the attention, one shared embedding.

Vaswani et al., arXiv 1706.03762. One 33708x512 matrix serves source, target and softmax. Attention is written out
(product, softmax, dropout, product) and not fused. A learned target-space vector is added to the encoder input.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workload import Options, Supervised

DROPOUT = 0.1
TARGET_SPACES = 32


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = nn.Dropout(DROPOUT)
        self.output = nn.Linear(width, width)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """query (N, T, W), key and value (N, S, W) -> (N, T, W)"""
        q, k, v = (x.unflatten(2, (self.heads, -1)).transpose(1, 2) for x in (query, key, value))
        scores = torch.matmul(q / math.sqrt(q.shape[-1]), k.transpose(2, 3))
        if mask is not None:
            scores = scores + mask
        weights = self.dropout(torch.softmax(scores, 3))
        return self.output(torch.matmul(weights, v).transpose(1, 2).flatten(2))


class SelfAttention(Attention):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads)
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, 2)
        return self.attend(query, key, value, mask)


class CrossAttention(Attention):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        key, value = self.key_value(memory).chunk(2, 2)
        return self.attend(self.query(x), key, value, None)


def feed_forward(width: int, filters: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, filters), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(filters, width))


class EncoderLayer(nn.Module):
    def __init__(self, width: int, filters: int, heads: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.self_attention = SelfAttention(width, heads)
        self.feed_forward = feed_forward(width, filters)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.self_attention(self.norms[0](x)))
        return x + self.dropout(self.feed_forward(self.norms[1](x)))


class DecoderLayer(nn.Module):
    def __init__(self, width: int, filters: int, heads: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.self_attention = SelfAttention(width, heads)
        self.cross_attention = CrossAttention(width, heads)
        self.feed_forward = feed_forward(width, filters)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        x = x + self.dropout(self.self_attention(self.norms[0](x), mask))
        x = x + self.dropout(self.cross_attention(self.norms[1](x), memory))
        return x + self.dropout(self.feed_forward(self.norms[2](x)))


def positions(length: int, width: int) -> Tensor:
    rates = torch.exp(torch.arange(width // 2) * (-math.log(10000.0) / (width // 2 - 1)))
    angles = torch.arange(length).unsqueeze(1) * rates
    return torch.cat([torch.sin(angles), torch.cos(angles)], 1)


class Transformer(nn.Module):
    positions: Tensor
    mask: Tensor

    def __init__(self, words: int, length: int, width: int, filters: int, heads: int, layers: int) -> None:
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(words, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.target_space = nn.Embedding(TARGET_SPACES, width)
        self.encoder = nn.Sequential(*(EncoderLayer(width, filters, heads) for _ in range(layers)))
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder = nn.ModuleList(DecoderLayer(width, filters, heads) for _ in range(layers))
        self.decoder_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(DROPOUT)
        self.register_buffer("positions", positions(length, width), persistent=False)
        self.register_buffer("mask", torch.full((length, length), -1e9).triu(1), persistent=False)

    def embed(self, words: Tensor) -> Tensor:
        return self.embedding(words) * math.sqrt(self.width)

    def forward(self, source: Tensor, target: Tensor, space: Tensor) -> Tensor:
        """source and target (N, L), space (1,) -> logits (N, L, words)"""
        x = self.embed(source) + self.target_space(space)
        memory = self.encoder_norm(self.encoder(self.dropout(x + self.positions)))
        y = F.pad(self.embed(target)[:, :-1], (0, 0, 1, 0))
        y = self.dropout(y + self.positions)
        for layer in self.decoder:
            y = layer(y, memory, self.mask)
        return F.linear(self.decoder_norm(y), self.embedding.weight)


def _loss(network: nn.Module, source: Tensor, target: Tensor, space: Tensor) -> Tensor:
    logits = network(source, target, space)
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), label_smoothing=0.1)


def build(
    options: Options,
    batch: int,
    length: int = 32,
    width: int = 512,
    filters: int = 2048,
    heads: int = 8,
    layers: int = 6,
    words: int = 33708,
) -> Supervised:
    with options.device:
        network = Transformer(words, length, width, filters, heads, layers)
        inputs = (
            torch.randint(words, (batch, length)),
            torch.randint(words, (batch, length)),
            torch.zeros(1, dtype=torch.long),
        )
    optimizer = torch.optim.Adam(
        network.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, capturable=options.capturable
    )
    return Supervised(network, optimizer, inputs, _loss, options)
