"""Trains one iteration between cudaProfilerStart and cudaProfilerStop, for a counter tool to look at.

ncu --profile-from-start off ... python3 one_iteration.py resnet50/b32/fp32/counters
"""

from __future__ import annotations

import sys

import torch

from measure import build
from plan import Configuration
from workload import no_phases

WARM_UP = 2


def main(key: str) -> None:
    workload = build(Configuration.parse(key), torch.device("cuda", 0), {})
    for _ in range(WARM_UP):
        workload.step(no_phases)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    workload.step(no_phases)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    main(sys.argv[1])
