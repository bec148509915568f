"""Scripts for several GPUs, captured as one process of them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import init_process_group  # as scripts import it, before anything is captured
from torch.nn.parallel import DistributedDataParallel as DDP

import tbdsim


def test_a_process_of_many_is_started_without_any_other() -> None:
    def train_step(batch: int) -> Callable[[], object]:
        init_process_group(backend="nccl")
        torch.cuda.set_device(dist.get_rank())
        model = DDP(nn.Linear(6, 4).cuda(), device_ids=[dist.get_rank()])
        assert dist.get_world_size() == 1 and isinstance(model, DDP)
        optimizer = torch.optim.SGD(model.train().parameters(), lr=0.1)
        inputs = torch.empty(batch, 6, device="cuda")

        def step() -> None:
            optimizer.zero_grad()
            with model.no_sync():
                model(inputs).mean().backward()
            loss = model(inputs).mean()
            loss.backward()
            optimizer.step()
            dist.all_reduce(loss.detach())

        return step

    found = [operator.name for operator in tbdsim.capture(train_step).operators]
    assert found.count("aten.addmm.default") == 2 and found[-1] == "c10d.allreduce_.default"
    assert not dist.is_initialized()


def test_data_parallel_is_the_model_on_one_gpu() -> None:
    def train_step(batch: int) -> Callable[[], None]:
        layer = torch.nn.Linear(6, 4)
        model, x = torch.nn.DataParallel(layer).cuda(), torch.empty(batch, 6, device="cuda")
        return lambda: model(x).sum().backward()

    step = tbdsim.capture(train_step)
    assert sum(step.parameter_counts().values()) == 6 * 4 + 4
    assert "aten.addmm.default" in [operator.name for operator in step.operators]
