"""The visible table of the models that can be trained. Needs no PyTorch, so that a plan can be made anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PRECISIONS = ("fp32", "tf32", "bf16")
MODES = ("eager", "cuda_graph", "compile", "counters")


@dataclass(frozen=True)
class Model:
    name: str
    module: str
    """File under models/, whose `build` makes the workload."""
    family: str
    """Prefix of the reporting group of its rows."""
    variant: str
    batches: tuple[int, ...]
    """The reference batch first, then the others by value."""
    batch_means: str
    unit: str
    samples: float
    """Units of throughput that one element of the batch adds to an iteration."""
    parameters: int
    """All parameters, frozen ones included."""
    gmac: float
    """Forward and backward, per element of the batch; only the plan's time estimate uses it."""
    host_seconds: float
    """Guess of the time to launch one iteration; only the plan's time estimate uses it."""
    setup_seconds: float
    """Guess of the time to build the network and to try convolution algorithms; likewise."""
    tiny: Mapping[str, int]
    """Arguments of `build` for the smoke run."""
    modes: tuple[str, ...] = field(default=("eager",))


MODELS: tuple[Model, ...] = (
    Model(
        name="resnet50",
        module="resnet",
        family="cnn",
        variant="v1.5 (stride in the 3x3), NCHW, 224x224, SGD momentum",
        batches=(32, 128, 64, 16),
        batch_means="images",
        unit="images/s",
        samples=1,
        parameters=25_557_032,
        gmac=12.15,
        host_seconds=0.012,
        setup_seconds=6,
        tiny={"batch": 2, "image": 32},
        modes=("eager", "cuda_graph", "compile", "counters"),
    ),
    Model(
        name="inception_v3",
        module="inception_v3",
        family="cnn",
        variant="auxiliary head trained, NCHW, 299x299, SGD momentum",
        batches=(32, 64, 16),
        batch_means="images",
        unit="images/s",
        samples=1,
        parameters=27_161_264,
        gmac=17.14,
        host_seconds=0.022,
        setup_seconds=8,
        tiny={"batch": 2, "image": 299},
    ),
    Model(
        name="seq2seq",
        module="seq2seq",
        family="seq2seq",
        variant="2+2 LSTM 512, additive attention, 25+25 tokens, cuDNN encoder, unrolled decoder, Adam",
        batches=(128, 64, 16),
        batch_means="sentence pairs",
        unit="sentences/s",
        samples=1,
        parameters=27_198_464,
        gmac=1.082,
        host_seconds=0.035,
        setup_seconds=2,
        tiny={"batch": 2, "width": 8, "source_words": 20, "target_words": 20, "length": 3},
        modes=("eager", "counters"),
    ),
    Model(
        name="transformer",
        module="transformer",
        family="transformer",
        variant="base, pre-norm, shared 33708x512 embedding, 32+32 tokens, unfused attention, Adam",
        batches=(64, 128, 32),
        batch_means="sentence pairs of 32+32 tokens",
        unit="tokens/s (source and target)",
        samples=64,
        parameters=61_415_424,
        gmac=5.94,
        host_seconds=0.022,
        setup_seconds=2,
        tiny={"batch": 2, "width": 16, "filters": 32, "heads": 2, "words": 30, "length": 4},
        modes=("eager", "cuda_graph", "compile", "counters"),
    ),
    Model(
        name="faster_rcnn",
        module="faster_rcnn",
        family="detection",
        variant="ResNet-101 C4 (v1.5), 600x800, 128 regions, RoI pooling 14x14, stem and stage 1 frozen, SGD momentum",
        batches=(1,),
        batch_means="images",
        unit="images/s",
        samples=1,
        parameters=47_462_111,
        gmac=523.4,
        host_seconds=0.045,
        setup_seconds=8,
        tiny={"batch": 1, "height": 64, "width": 96, "regions": 8},
    ),
    Model(
        name="deep_speech2",
        module="deep_speech2",
        family="speech",
        variant="2 conv, two stacks of 5 GRU 1760 (forward, backward), CTC, 15 s, 28 labels, SGD momentum",
        batches=(8, 16, 4),
        batch_means="utterances of 15 s",
        unit="seconds of audio/s",
        samples=15,
        parameters=180_973_213,
        gmac=410.5,
        host_seconds=0.25,
        setup_seconds=3,
        tiny={"batch": 2, "frames": 60, "units": 8, "label_length": 2},
    ),
    Model(
        name="wgan_gp",
        module="wgan_gp",
        family="gan",
        variant="64x64 residual generator and critic, 5 critic steps with gradient penalty and 1 generator step, Adam",
        batches=(64, 32, 16),
        batch_means="images per critic step",
        unit="images/s",
        samples=1,
        parameters=16_032_324,
        gmac=119.4,
        host_seconds=0.12,
        setup_seconds=5,
        tiny={"batch": 2, "width": 2},
    ),
    Model(
        name="a3c",
        module="a3c",
        family="reinforcement",
        variant="4x84x84, 6 actions, 5 rollout passes, 4 training passes, 1 update, synthetic environments, Adam",
        batches=(32, 128, 64),
        batch_means="environments",
        unit="frames/s",
        samples=4,
        parameters=677_943,
        gmac=0.0439,
        host_seconds=0.008,
        setup_seconds=2,
        tiny={"batch": 2},
    ),
)

BY_NAME: Mapping[str, Model] = {model.name: model for model in MODELS}
