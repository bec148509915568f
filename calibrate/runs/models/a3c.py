"""A3C's Atari network with synthetic environments.

Mnih et al., arXiv 1602.01783. One iteration: a rollout of four steps (five forward passes, the last one for the
bootstrap value; every pass copies frames to the device and policy and value back, since the environments live on
the host), four training passes whose gradients add up, one Adam update. The environments return random frames at
once, so the host time is the framework's alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workload import Options, Phase, Workload

STEPS = 4
ACTIONS = 6
FRAME = (4, 84, 84)
DISCOUNT = 0.99
ENTROPY = 0.08


class ActorCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(4, 16, 8, 4)
        self.conv2 = nn.Conv2d(16, 32, 4, 2)
        self.hidden = nn.Linear(32 * 9 * 9, 256)
        self.policy = nn.Linear(256, ACTIONS)
        self.value = nn.Linear(256, 1)

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """frames (N, 4, 84, 84), bytes -> logits (N, actions), value (N,)"""
        x = F.relu(self.conv1(frames.float() / 255))
        x = F.relu(self.hidden(F.relu(self.conv2(x)).flatten(1)))
        return self.policy(x), self.value(x).squeeze(1)


class SyntheticEnvironments:
    """Answers every action with the next of a few random frames and a reward of -1, 0 or 1."""

    def __init__(self, count: int, frames: int = 8) -> None:
        self._frames = torch.randint(256, (frames, count, *FRAME), dtype=torch.uint8, device="cpu")
        self._rewards = torch.randint(-1, 2, (frames, count), device="cpu").float()
        self._next = 0

    def observe(self) -> Tensor:
        return self._frames[self._next]

    def act(self, actions: Tensor) -> Tensor:
        self._next = (self._next + 1) % len(self._frames)
        return self._rewards[self._next] * (actions >= 0)


class A3c(Workload):
    def __init__(self, options: Options, batch: int) -> None:
        with options.device:
            self.network = ActorCritic()
        self.environments = SyntheticEnvironments(batch)
        self.options = options
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=1e-4, eps=1e-3, capturable=options.capturable)
        self.modules = [self.network]
        self.optimizers = [self.optimizer]
        self.inputs = []

    def step(self, phase: Phase) -> Tensor:
        frames, actions, returns = self._rollout(phase)
        for t in range(STEPS):
            with phase("forward"), self.options.autocast():
                loss = self._loss(frames[t], actions[t], returns[t])
            with phase("backward"):
                loss.backward()
        with phase("optimizer"):
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.detach()

    def _rollout(self, phase: Phase) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        device = self.options.device
        frames, actions, rewards = [], [], []
        for _ in range(STEPS):
            frame, probabilities, _value = self._look(phase)
            action = torch.multinomial(probabilities, 1).squeeze(1)
            frames.append(frame)
            actions.append(action.to(device))
            rewards.append(self.environments.act(action))
        _frame, _probabilities, value = self._look(phase)
        returns = []
        for reward in reversed(rewards):
            value = reward + DISCOUNT * value
            returns.append(value.to(device))
        return frames, actions, returns[::-1]

    def _look(self, phase: Phase) -> tuple[Tensor, Tensor, Tensor]:
        """The frames on the device, policy and value on the host."""
        with phase("forward"), torch.no_grad(), self.options.autocast():
            frame = self.environments.observe().to(self.options.device)
            logits, value = self.network(frame)
            return frame, torch.softmax(logits.float(), 1).cpu(), value.float().cpu()

    def _loss(self, frame: Tensor, action: Tensor, target: Tensor) -> Tensor:
        logits, value = self.network(frame)
        log_policy = F.log_softmax(logits.float(), 1)
        chosen = log_policy.gather(1, action.unsqueeze(1)).squeeze(1)
        advantage = target - value.float()
        entropy = -(log_policy.exp() * log_policy).sum(1)
        return (-chosen * advantage.detach() + 0.5 * advantage**2 - ENTROPY * entropy).mean()


def build(options: Options, batch: int) -> A3c:
    return A3c(options, batch)
