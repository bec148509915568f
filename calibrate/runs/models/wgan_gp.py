"""WGAN-GP on 64x64 images: five critic steps with gradient penalty, then one generator step.

Gulrajani et al., arXiv 1704.00028, GoodGenerator and GoodDiscriminator of igul222/improved_wgan_training. The
critic's layer norm takes its statistics over channels and image and has a scale and shift per channel, which is
group norm with one group. The gradient penalty is differentiated through, so its backward pass is a second order
one: it stands apart as "double_backward".
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workload import Options, Phase, Workload

NOISE = 128
PENALTY = 10.0
CRITIC_STEPS = 5


def upsample(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2.0, mode="nearest")


class UpBlock(nn.Module):
    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.shortcut = nn.Conv2d(channels_in, channels_out, 1)
        self.bn1 = nn.BatchNorm2d(channels_in, track_running_stats=False)
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out, track_running_stats=False)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(upsample(F.relu(self.bn1(x))))
        y = self.conv2(F.relu(self.bn2(y)))
        return y + self.shortcut(upsample(x))


class DownBlock(nn.Module):
    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.shortcut = nn.Conv2d(channels_in, channels_out, 1)
        self.norm1 = nn.GroupNorm(1, channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels_in, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(1, channels_in)
        self.conv2 = nn.Conv2d(channels_in, channels_out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(F.relu(self.norm1(x)))
        y = F.avg_pool2d(self.conv2(F.relu(self.norm2(y))), 2)
        return y + self.shortcut(F.avg_pool2d(x, 2))


class Generator(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.input = nn.Linear(NOISE, 8 * width * 4 * 4)
        self.blocks = nn.Sequential(
            UpBlock(8 * width, 8 * width),
            UpBlock(8 * width, 4 * width),
            UpBlock(4 * width, 2 * width),
            UpBlock(2 * width, width),
        )
        self.bn = nn.BatchNorm2d(width, track_running_stats=False)
        self.output = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, noise: Tensor) -> Tensor:
        x = self.blocks(self.input(noise).unflatten(1, (-1, 4, 4)))
        return torch.tanh(self.output(F.relu(self.bn(x))))


class Critic(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.input = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.Sequential(
            DownBlock(width, 2 * width),
            DownBlock(2 * width, 4 * width),
            DownBlock(4 * width, 8 * width),
            DownBlock(8 * width, 8 * width),
        )
        self.output = nn.Linear(8 * width * 4 * 4, 1)

    def forward(self, image: Tensor) -> Tensor:
        return self.output(self.blocks(self.input(image)).flatten(1)).squeeze(1)


class WganGp(Workload):
    def __init__(self, options: Options, batch: int, width: int) -> None:
        with options.device:
            self.generator = Generator(width)
            self.critic = Critic(width)
            self.real = torch.rand(batch, 3, 64, 64) * 2 - 1
        self.options = options
        self.generator_optimizer = self._adam(self.generator)
        self.critic_optimizer = self._adam(self.critic)
        self.modules = [self.generator, self.critic]
        self.optimizers = [self.generator_optimizer, self.critic_optimizer]
        self.inputs = [self.real]

    def _adam(self, network: nn.Module) -> torch.optim.Adam:
        return torch.optim.Adam(network.parameters(), lr=1e-4, betas=(0.0, 0.9), capturable=self.options.capturable)

    def _noise(self) -> Tensor:
        return torch.randn(self.real.shape[0], NOISE, device=self.real.device)

    def step(self, phase: Phase) -> Tensor:
        for _ in range(CRITIC_STEPS):
            loss = self._critic_step(phase)
        self._generator_step(phase)
        return loss

    def _critic_step(self, phase: Phase) -> Tensor:
        with phase("forward"), self.options.autocast():
            with torch.no_grad():
                fake = self.generator(self._noise()).float()
            mix = torch.rand(self.real.shape[0], 1, 1, 1, device=self.real.device)
            between = (self.real + mix * (fake - self.real)).requires_grad_()
            distance = self.critic(fake).mean() - self.critic(self.real).mean()
            score = self.critic(between).sum()
        with phase("backward"):
            distance.backward()
            (slope,) = torch.autograd.grad(score, between, create_graph=True)
        with phase("double_backward"):
            penalty = PENALTY * ((slope.flatten(1).norm(dim=1) - 1) ** 2).mean()
            penalty.backward()
        with phase("optimizer"):
            self.critic_optimizer.step()
            self.critic_optimizer.zero_grad()
        return (distance + penalty).detach()

    def _generator_step(self, phase: Phase) -> None:
        self.critic.requires_grad_(False)
        with phase("forward"), self.options.autocast():
            loss = -self.critic(self.generator(self._noise())).mean()
        with phase("backward"):
            loss.backward()
        with phase("optimizer"):
            self.generator_optimizer.step()
            self.generator_optimizer.zero_grad()
        self.critic.requires_grad_(True)


def build(options: Options, batch: int, width: int = 64) -> WganGp:
    return WganGp(options, batch, width)
