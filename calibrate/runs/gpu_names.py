"""What the catalogue of GPUs calls a card that the driver names."""

from __future__ import annotations

import re

CATALOGUE_NAMES = {
    "B200": "b200",
    "H200": "h200",
    "H200 NVL": "h200_nvl",
    "H100 80GB HBM3": "h100_sxm",
    "H100 PCIe": "h100_pcie",
    "A100-SXM4-40GB": "a100_sxm_40gb",
    "A100-SXM4-80GB": "a100_sxm_80gb",
    "A100-PCIE-40GB": "a100_pcie_40gb",
    "A100 80GB PCIe": "a100_pcie_80gb",
    "V100-SXM2-16GB": "v100_sxm2_16gb",
    "V100-SXM2-32GB": "v100_sxm2_32gb",
    "V100-SXM3-32GB": "v100_sxm3_32gb",
    "V100-PCIE-16GB": "v100_pcie_16gb",
    "P100-SXM2-16GB": "p100_sxm2",
    "P100-PCIE-16GB": "p100_pcie",
    "GTX TITAN X": "titanx_maxwell",
    "TITAN X (Pascal)": "titanx_pascal",
    "Quadro P4000": "p4000",
    "RTX A6000": "rtxa6000",
    "Quadro RTX 6000": "quadro_rtx6000",
    "Quadro RTX 8000": "quadro_rtx8000",
}
"""Where the catalogue's name is not the driver's name run together ("GeForce RTX 2080 Ti" is rtx2080ti)."""


def catalogue_name(driver_name: str) -> str:
    bare = re.sub(r"^(NVIDIA )?(Tesla |GeForce )?", "", driver_name)
    return CATALOGUE_NAMES.get(bare) or re.sub(r"[^a-z0-9]", "", bare.lower())
