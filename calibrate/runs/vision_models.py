"""The models of the vision tables, and their training steps as the benchmarks wrote them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import timm
import torch
import torchvision
from vision_rows import Recipe, wrong_release

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import tbdsim


def build(recipe: Recipe) -> torch.nn.Module:
    """Returns the model for images of the recipe's size. Attention is taken apart as PyTorch before 2.0 had it where that ran."""
    if recipe.library == "torchvision":
        options: dict[str, Any] = {"aux_logits": True} if recipe.model in ("inception_v3", "googlenet") else {}
        return torchvision.models.get_model(
            recipe.model, weights=None, **({**options, "init_weights": False} if options else {})
        )
    if hasattr(timm, "layers"):  # timm before 0.9 has no fused attention
        timm.layers.set_fused_attn(recipe.step == "timm_train")
    model = timm.create_model(recipe.model)
    if model.default_cfg["input_size"][-1] != recipe.image:
        try:
            return timm.create_model(recipe.model, img_size=recipe.image)
        except TypeError:
            pass  # a model that takes images of any size
    return model


def _outputs(output: Any) -> torch.Tensor:
    return output[0] if isinstance(output, tuple) else output


def _images(recipe: Recipe, batch: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    images = torch.empty(batch, 3, recipe.image, recipe.image, device="cuda", dtype=dtype)
    return images.contiguous(memory_format=torch.channels_last) if recipe.memory_format == "nhwc" else images


TrainStep = Callable[[int], Callable[[], None]]


def _timm_benchmark(recipe: Recipe, model: torch.nn.Module) -> TrainStep:
    """timm 0.6's benchmark.py: gradients filled with zeros, targets made on the GPU, backward pass inside the autocast region; it
    waits for the GPU after each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, nesterov=True)

    def train_step(batch: int) -> Callable[[], None]:
        images = _images(recipe, batch)

        def step() -> None:
            optimizer.zero_grad(set_to_none=False)
            with torch.autocast("cuda", dtype=torch.float16):
                output = _outputs(model(images))
                target = torch.empty(batch, device="cuda", dtype=torch.int64).random_(1000)
                torch.nn.functional.cross_entropy(output, target).backward()
            optimizer.step()
            torch.cuda.synchronize()

        return step

    return train_step


def _plain(recipe: Recipe, model: torch.nn.Module) -> TrainStep:
    """Forward and backward pass, and the optimizer where the benchmark has one, in one precision. Benchmarks of the two passes wait
    for the GPU after each step; torchvision's of 2020 copies its images to it, pycls waits after the forward pass, too."""
    dtype = torch.float16 if recipe.precision == "pure_fp16" else torch.float32
    model.to(dtype)
    optimizer: torch.optim.Optimizer | None = None
    if recipe.step == "timm_train":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    elif recipe.step == "adam":
        optimizer = torch.optim.Adam(model.parameters())

    def train_step(batch: int) -> Callable[[], None]:
        images = _images(recipe, batch, dtype)
        on_host = torch.empty(images.shape, dtype=dtype, device="cpu")
        target = torch.empty(batch, device="cuda", dtype=torch.int64)
        timed = recipe.step.endswith("forward_backward")
        copies = recipe.step == "forward_backward" and recipe.library == "torchvision"

        def step() -> None:
            # PyTorch before 2.0, which ran forward and backward passes alone, filled gradients with zeros
            (optimizer or model).zero_grad(set_to_none=optimizer is not None)
            output = _outputs(model(on_host.cuda() if copies else images))
            loss = torch.nn.functional.cross_entropy(output, target)
            if timed and recipe.library == "timm":
                torch.cuda.synchronize()
            loss.backward()
            if optimizer is not None:
                optimizer.step()
            if timed:
                torch.cuda.synchronize()

        return step

    return train_step


def capture(recipe: Recipe) -> tbdsim.Step:
    """Returns the captured step of a recipe."""
    if wrong := wrong_release(recipe, timm.__version__):
        raise RuntimeError(wrong)
    built: list[TrainStep] = []

    def train_step(batch: int) -> Callable[[], None]:
        if not built:
            model = build(recipe).train()
            if recipe.memory_format == "nhwc":
                model.to(memory_format=torch.channels_last)
            built.append((_timm_benchmark if recipe.step == "timm_benchmark" else _plain)(recipe, model))
        return built[0](batch)

    library = recipe.library.partition("-")[0]  # without a release
    version = (timm if library == "timm" else torchvision).__version__.split("+")[0]
    return tbdsim.capture(
        train_step,
        precision=recipe.precision,
        channels_last=recipe.memory_format == "nhwc",
        name=recipe.model,
        title=f"{recipe.model} ({library} {version})",
        sample="image",
    )
