"""Rows of measured vision training (`vision/runs.csv`), and which captured step each one trains."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Recipe:
    """A step to capture: `library` with its version where one older than today's was measured, `step` how the benchmark trains
    (`vision_models.py`), `image` the side of an image in pixels."""

    library: str
    model: str
    image: int
    precision: str
    memory_format: str
    step: str

    @property
    def file(self) -> str:
        return f"{self.library}.{self.model}.{self.image}.{self.precision}.{self.memory_format}.{self.step}.step.json.gz"


def wrong_release(recipe: Recipe, installed: str) -> str:
    """Returns what to do where a recipe names another release of its library than the one that is installed; else nothing."""
    library, _, release = recipe.library.partition("-")
    if release in ("", installed):
        return ""
    given = f"pip install --no-deps --target FOLDER {library}=={release}, then PYTHONPATH=FOLDER"
    return f"{recipe.file} needs {library} {release}, {installed} is installed: {given}"


#: The steps in tests/captured: a dozen different networks, trained as timm's benchmark does, and three others.
FIXTURES = (
    *(
        Recipe("timm", model, 299 if model == "inception_v3" else 224, "fp16", "nchw", "timm_benchmark")
        for model in (
            "resnet50", "mobilenetv3_large_100", "efficientnet_b0", "regnety_016", "swin_tiny_patch4_window7_224",
            "vit_small_patch16_224", "convnext_tiny", "mixer_b16_224", "densenet121", "resnest50d", "coat_tiny", "nfnet_l0",
            "inception_v3",
        )
    ),
    Recipe("timm", "resnet50", 224, "fp16", "nhwc", "timm_benchmark"),
    Recipe("timm", "vit_small_patch16_224", 224, "tf32", "nchw", "timm_train"),
    Recipe("torchvision", "resnet50", 224, "fp32", "nchw", "adam"),
)  # fmt: skip

#: timm as its author measured it on the RTX 3090: the release of the day of the table with PyTorch 1.12 (27 July 2022).
TIMM_OF_2022 = "timm-0.6.7"

TORCHVISION_PRECISIONS = {"fp16 (model.half())": "pure_fp16", "fp32": "fp32", "fp32 (NGC 20.10: TF32 on)": "tf32"}


def recipe(row: dict[str, str]) -> Recipe | None:
    """Returns the step that a row of runs.csv or bounds.csv trains; None where no library here has its model."""
    if not row["image_size"].isdigit():
        return None
    image, which = int(row["image_size"]), row["set"]
    if which.startswith("timm_train"):
        return Recipe(TIMM_OF_2022, row["model"], image, "fp16", row["memory_format"], "timm_benchmark")
    if which == "gpumemnet_timm_memory":
        return Recipe("timm", row["model_now"], image, "tf32", "nchw", "timm_train") if row["model_now"] else None
    if which == "gpumemnet_cnn":
        return Recipe("torchvision", row["model"], image, "fp32", "nchw", "adam")
    if which == "pycls_timing":
        return Recipe("timm", row["model_now"], image, "fp32", "nchw", "forward_backward") if row["model_now"] else None
    if which == "torchvision_zoo_fwd_bwd":
        # benchmark_models.py of 2018, which timed 20 steps, kept its images on the GPU
        step = "resident_forward_backward" if "20 steps" in row["unit"] else "forward_backward"
        return Recipe("torchvision", row["model"], image, TORCHVISION_PRECISIONS[row["precision"]], "nchw", step)
    return None


def is_fit(row: dict[str, str]) -> bool:
    """Whether a row may be looked at one by one and fitted to: a quarter of the graphs, by their key."""
    return int(hashlib.md5(row["arch_key"].encode()).hexdigest(), 16) % 4 == 0


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def steps_here(wanted: Iterable[Recipe], folder: Path) -> str:
    """Returns how many of the captured steps are in a folder. Ends the program if none is: such a folder is a mistake."""
    files = [recipe.file for recipe in wanted]
    here = sum((folder / file).exists() for file in files)
    if not here:
        raise SystemExit(f"{folder}: none of the {len(files)} captured steps is here; expected what `vision.py capture` writes")
    return f"{folder}: {here} of {len(files)} captured steps are here"


def recipes(rows: Iterable[dict[str, str]]) -> dict[Recipe, list[dict[str, str]]]:
    """Returns the rows of each step to capture, in the order in which the table first names it."""
    by_recipe: dict[Recipe, list[dict[str, str]]] = {}
    for row in rows:
        wanted = recipe(row)
        if wanted is not None:
            by_recipe.setdefault(wanted, []).append(row)
    return by_recipe
