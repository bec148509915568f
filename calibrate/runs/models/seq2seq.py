"""Sequence to sequence translation: 2 LSTM layers each side, additive (MLP) attention, input feeding.

The network of TensorFlow's NMT tutorial with "standard" Bahdanau attention on IWSLT15 English-Vietnamese.
The encoder is PyTorch's fused LSTM; the decoder is unrolled, since each step needs the attention of the last.
PyTorch's LSTM has two bias vectors per layer where TensorFlow's has one: 4 x 2048 parameters more.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workload import Options, Supervised


class AdditiveAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.memory = nn.Linear(width, width, bias=False)
        self.query = nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """query (N, W), keys and values (N, S, W) -> context (N, W)"""
        scores = self.score(torch.tanh(self.query(query).unsqueeze(1) + keys)).squeeze(2)
        weights = torch.softmax(scores, 1)
        return torch.bmm(weights.unsqueeze(1), values).squeeze(1)


class Seq2Seq(nn.Module):
    def __init__(self, source_words: int, target_words: int, width: int) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(source_words, width)
        self.target_embedding = nn.Embedding(target_words, width)
        self.encoder = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.decoder1 = nn.LSTMCell(2 * width, width)
        self.decoder2 = nn.LSTMCell(width, width)
        self.attention = AdditiveAttention(width)
        self.combine = nn.Linear(2 * width, width, bias=False)
        self.project = nn.Linear(width, target_words, bias=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source (N, S), target (N, T) -> logits (N, T, words)"""
        memory, (hidden, cell) = self.encoder(self.source_embedding(source))
        keys = self.attention.memory(memory)
        state1, state2 = (hidden[0], cell[0]), (hidden[1], cell[1])
        words = self.target_embedding(target)
        attended = torch.zeros_like(words[:, 0])
        outputs = []
        for word in words.unbind(1):
            state1 = self.decoder1(torch.cat([word, attended], 1), state1)
            state2 = self.decoder2(state1[0], state2)
            context = self.attention(state2[0], keys, memory)
            attended = self.combine(torch.cat([state2[0], context], 1))
            outputs.append(attended)
        return self.project(torch.stack(outputs, 1))


def _loss(network: nn.Module, source: Tensor, target: Tensor, expected: Tensor) -> Tensor:
    return F.cross_entropy(network(source, target).flatten(0, 1), expected.flatten())


def build(
    options: Options,
    batch: int,
    length: int = 25,
    width: int = 512,
    source_words: int = 17191,
    target_words: int = 7709,
) -> Supervised:
    with options.device:
        network = Seq2Seq(source_words, target_words, width)
        inputs = (
            torch.randint(source_words, (batch, length)),
            torch.randint(target_words, (batch, length)),
            torch.randint(target_words, (batch, length)),
        )
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-4, capturable=options.capturable)
    return Supervised(network, optimizer, inputs, _loss, options, lambda p: nn.utils.clip_grad_norm_(p, 1.0))
