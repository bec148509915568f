#!/usr/bin/env python3
"""Times how long a core takes to prepare a training sample as programs of the suite's later page do.

    loaders.py [-o loaders.csv] [--seconds 3]

Prints the least and the median time of a sample in ms: data sets of graphs/datasets quote them as `decode_time`. No data
set is needed: images are made up, of COCO's mean size in pixels (640 x 480) and in storage (163 kB). What a program does
in the loader's process is repeated with PIL, numpy and torch; what is left out is said beside each. Ends with 77 where one
of them is missing.
"""

from __future__ import annotations

import argparse
import csv
import io
import statistics
import sys
import time
from collections.abc import Callable

try:
    import numpy as np
    import torch
    from PIL import Image
    from torchvision.transforms import v2
except ImportError as missing:
    print(f"loaders.py needs {missing.name}", file=sys.stderr)
    sys.exit(77)

JPEG_BYTES = 163_000  # train2017.zip, 19.3 GB, over its 118,287 images
VOC_BYTES = 87_000  # VOCtrainval and VOCtest of 2007, 0.87 GB with 9,963 images (from memory)
OBJECTS = 7  # of an image of COCO (Carion et al., ECCV 2020, section 4)
MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
POSITIVES, RATINGS, ITEMS = 5, 2_000_000, 26_744  # of MovieLens 20M a tenth of the ratings
BATCH, WORDS = 32, 30  # samples that are collated; words of a sentence
RATE, SECONDS = 16_000, 12.7  # of LibriSpeech's mean utterance


def jpeg(width: int = 640, height: int = 480, size: int = JPEG_BYTES) -> bytes:
    """Returns an image of so many pixels, smooth with noise, in the quality that comes nearest to `size` bytes."""
    random = np.random.default_rng(1)
    coarse = random.integers(0, 256, (30, 40, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC), dtype=np.float32)
    image = Image.fromarray(np.clip(smooth + random.normal(0, 12, smooth.shape), 0, 255).astype(np.uint8))
    files = []
    for quality in range(50, 98, 3):
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality)
        files.append(file.getvalue())
    return min(files, key=lambda data: abs(len(data) - size))


def boxes(count: int) -> np.ndarray:
    """Returns corners of `count` boxes in pixels."""
    corners = np.random.default_rng(2).uniform(0, 300, (count, 4)).astype(np.float32)
    corners[:, 2:] += corners[:, :2] + 20
    return corners


def overlaps(anchors: torch.Tensor, objects: torch.Tensor) -> torch.Tensor:
    """Returns the intersection over union of each anchor and object, as the programs' operators compute it."""
    low = torch.max(anchors[:, None, :2], objects[None, :, :2])
    high = torch.min(anchors[:, None, 2:], objects[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(dim=2)
    area = [(b[:, 2:] - b[:, :2]).prod(dim=1) for b in (anchors, objects)]
    return shared / (area[0][:, None] + area[1][None] - shared)


def images_of_300(data: bytes) -> Callable[[], object]:
    """SSD (mlcommons/training retired_benchmarks/ssd-v1, ssd/utils.py SSDTransformer and Encoder)."""
    change = v2.Compose([v2.RandomResizedCrop(300, scale=(0.3, 1)), v2.ColorJitter(0.125, 0.5, 0.5, 0.05),
                         v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.RandomHorizontalFlip(),
                         v2.Normalize(MEAN, DEVIATION)])
    anchors, objects = torch.from_numpy(boxes(8732)), torch.from_numpy(boxes(OBJECTS))

    def prepare() -> object:
        image = change(Image.open(io.BytesIO(data)).convert("RGB"))
        return image, overlaps(anchors, objects).max(dim=1)

    return prepare


def images_of_800(data: bytes) -> Callable[[], object]:
    """Faster and Mask R-CNN (maskrcnn-benchmark, data/transforms: Resize, ToTensor, Normalize of 0 to 255; detectron2 the
    same without the normalization), polygons left out."""
    change = v2.Compose([v2.Resize((800, 1066)), v2.RandomHorizontalFlip(), v2.ToImage(),
                         v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)])
    return lambda: change(Image.open(io.BytesIO(data)).convert("RGB"))


def images_of_600(_: bytes) -> Callable[[], object]:
    """Faster R-CNN on Pascal VOC (rbgirshick/py-faster-rcnn lib/roi_data_layer/minibatch.py and its descendants: less the
    mean, shorter side of 600 pixels), images of 500 x 375 pixels; flipped ones cost the same."""
    data = jpeg(500, 375, VOC_BYTES)

    def prepare() -> object:
        pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=np.float32) - 120
        image = torch.from_numpy(pixels.transpose(2, 0, 1).copy())[None]
        return torch.nn.functional.interpolate(image, size=(600, 800), mode="bilinear")[0]

    return prepare


def images_of_32(_: bytes) -> Callable[[], object]:
    """ResNets on CIFAR-10 (torchvision's data set in memory: crop with four pixels of padding, flip, normalize)."""
    change = v2.Compose([v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip(), v2.ToImage(),
                         v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)])
    pixels = np.random.default_rng(9).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    return lambda: change(Image.fromarray(pixels))


def images_of_64(_: bytes) -> Callable[[], object]:
    """WGAN (igul222/improved_wgan_training tflib/small_imagenet.py: a PNG of 64 x 64 pixels, transposed)."""
    file = io.BytesIO()
    Image.open(io.BytesIO(jpeg())).resize((64, 64)).save(file, "PNG")
    return lambda: np.asarray(Image.open(io.BytesIO(file.getvalue())).convert("RGB")).transpose(2, 0, 1).copy()


def images_of_512(data: bytes) -> Callable[[], object]:
    """EfficientDet-D0 (google/automl dataloader.py: normalize, scale and crop, label anchors; the suite's PyTorch program
    normalizes and resizes alike, its anchors are matched in the training loop)."""
    change = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION),
                         v2.Resize((512, 682)), v2.CenterCrop(512), v2.RandomHorizontalFlip()])
    anchors, objects = torch.from_numpy(boxes(49104)), torch.from_numpy(boxes(OBJECTS))

    def prepare() -> object:
        image = change(Image.open(io.BytesIO(data)).convert("RGB"))
        return image, overlaps(anchors, objects).max(dim=1)

    return prepare


def images_of_1024(data: bytes) -> Callable[[], object]:
    """Mask R-CNN of matterport (mrcnn/model.py data_generator: resize_image, minimize_mask of each object,
    build_rpn_targets in numpy), with PIL where it has skimage; polygons drawn left out."""
    anchors, objects = boxes(261888), boxes(OBJECTS)
    masks = np.random.default_rng(3).random((OBJECTS, 480, 640)) > 0.5
    areas = (anchors[:, 2] - anchors[:, 0]) * (anchors[:, 3] - anchors[:, 1])

    def prepare() -> object:
        image = Image.open(io.BytesIO(data)).convert("RGB").resize((1024, 768), Image.Resampling.BILINEAR)
        pixels = np.pad(np.asarray(image), ((128, 128), (0, 0), (0, 0))).astype(np.float32) - 120
        large = [np.asarray(Image.fromarray(mask).resize((1024, 768))) for mask in masks]
        small = [np.asarray(Image.fromarray(mask[100:400, 100:400]).resize((56, 56))) for mask in large]
        matches = []
        for one in objects:
            low, high = np.maximum(anchors[:, :2], one[:2]), np.minimum(anchors[:, 2:], one[2:])
            shared = np.maximum(high - low, 0).prod(axis=1)
            matches.append(shared / (areas + (one[2:] - one[:2]).prod() - shared))
        return pixels, small, np.stack(matches).argmax(axis=0)

    return prepare


def ratings(_: bytes) -> Callable[[], object]:
    """NCF of MLPerf v0.5 (mlcommons/training at 50a4a78d, recommendation/pytorch/dataset.py CFTrainDataset): four of five
    samples are drawn until no rating is met; 1024 at a time, with what collates and shuffles them."""
    random = np.random.default_rng(4)
    data = [(int(u), int(i)) for u, i in random.integers(0, [138_493, ITEMS], (RATINGS, 2))]
    known = dict.fromkeys(data, 1.0)

    class Samples(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return POSITIVES * len(data)

        def __getitem__(self, index: int) -> tuple[int, int, np.ndarray]:
            user, item = data[index // POSITIVES]
            if index % POSITIVES == 0:
                return user, item, np.ones(1, dtype=np.float32)
            item = torch.LongTensor(1).random_(0, ITEMS).item()
            while (user, item) in known:
                item = torch.LongTensor(1).random_(0, ITEMS).item()
            return user, item, np.zeros(1, dtype=np.float32)

    batches = iter(torch.utils.data.DataLoader(Samples(), batch_size=1024, shuffle=True, num_workers=0))
    next(batches)  # the shuffle of an epoch's indices
    return lambda: next(batches)


def utterances(_: bytes) -> Callable[[], object]:
    """Deep Speech 2 (tensorflow/models research/deep_speech data/featurizer.py: a spectrogram by numpy's FFT, windows of
    20 ms each 10 ms, normalized; SeanNaren's, by librosa, alike), samples of 2 bytes in memory."""
    sound = np.random.default_rng(5).integers(-2000, 2000, int(RATE * SECONDS), dtype=np.int16)

    def prepare() -> object:
        samples = sound.astype(np.float32)
        window, hop = RATE // 50, RATE // 100
        frames = np.lib.stride_tricks.sliding_window_view(samples, window)[::hop] * np.hanning(window)
        spectrum = np.log(np.abs(np.fft.rfft(frames)) ** 2 + 1e-14)
        return (spectrum - spectrum.mean(axis=0)) / (spectrum.std(axis=0) + 1e-6)

    return prepare


def positions(_: bytes) -> Callable[[], object]:
    """MiniGo (tensorflow/minigo preprocessing.py: planes and moves of a record as floats, one of eight symmetries of
    both in numpy)."""
    random = np.random.default_rng(6)
    planes, moves = random.integers(0, 2, 361 * 17, dtype=np.uint8).tobytes(), random.random(362, dtype=np.float32)

    def prepare() -> object:
        board = np.frombuffer(planes, dtype=np.uint8).astype(np.float32).reshape(19, 19, 17)
        turns = int(random.integers(0, 8))
        turned = np.rot90(board[::-1] if turns > 3 else board, turns % 4).copy()
        answer = moves[:-1].reshape(19, 19)
        return turned, np.rot90(answer[::-1] if turns > 3 else answer, turns % 4).ravel()

    return prepare


def batches_of(samples: torch.utils.data.Dataset, batch: int) -> Callable[[], object]:
    """Returns what draws and collates the next batch in this process, shuffled, epoch after epoch."""
    loader = torch.utils.data.DataLoader(samples, batch_size=batch, shuffle=True, num_workers=0, drop_last=True)
    state = {"batches": iter(loader)}

    def prepare() -> object:
        batch_of = next(state["batches"], None)
        if batch_of is None:
            state["batches"] = iter(loader)
            batch_of = next(state["batches"])
        return batch_of

    return prepare


def questions(_: bytes) -> Callable[[], object]:
    """Fine-tuned BERT (NVIDIA/DeepLearningExamples PyTorch/LanguageModeling/BERT run_squad.py: a TensorDataset of word,
    mask and segment numbers and the answer's two ends, made before training)."""
    rows = 2048
    words = [torch.randint(0, 30522, (rows, 384)) for _ in range(3)]
    return batches_of(torch.utils.data.TensorDataset(*words, *torch.randint(0, 384, (2, rows))), BATCH)


def masked_words(_: bytes) -> Callable[[], object]:
    """BERT's pre-training (the same, run_pretraining.py pretraining_dataset: rows of six arrays in memory as tensors, labels
    of the masked words alone)."""
    rows, length, masked = 2048, 512, 80
    random = np.random.default_rng(7)
    inputs = [random.integers(0, 30522, (rows, length), dtype=np.int32) for _ in range(3)]
    places = random.integers(1, length, (rows, masked), dtype=np.int32)
    hidden = random.integers(0, 30522, (rows, masked), dtype=np.int32)
    follows = random.integers(0, 2, rows)

    class Samples(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return rows

        def __getitem__(self, index: int) -> list[torch.Tensor]:
            words = [torch.from_numpy(array[index].astype(np.int64)) for array in inputs]
            labels = torch.full((length,), -1, dtype=torch.long)
            labels[torch.from_numpy(places[index].astype(np.int64))] = torch.from_numpy(hidden[index].astype(np.int64))
            return [*words, labels, torch.tensor(int(follows[index]))]

    return batches_of(Samples(), BATCH)


def sentences(_: bytes) -> Callable[[], object]:
    """Translation (tensorflow/nmt iterator_utils.py and OpenNMT: lines split at spaces, words looked up, both sides padded to
    the longest of a batch), pairs of WORDS words."""
    random = np.random.default_rng(8)
    vocabulary = {f"word{i}": i for i in range(32_000)}
    names = list(vocabulary)
    lengths = random.poisson(WORDS, (2, BATCH))
    lines = [[" ".join(random.choice(names, length)) for length in side] for side in lengths]

    def prepare() -> list[np.ndarray]:
        sides = []
        for side in lines:
            numbers = [[vocabulary.get(word, 0) for word in line.split()] for line in side]
            padded = np.zeros((len(numbers), max(map(len, numbers)) + 2), dtype=np.int64)
            for row, line in zip(padded, numbers, strict=True):
                row[1:len(line) + 1] = line
            sides.append(padded)
        return sides

    return prepare


#: name, what prepares samples, samples of a call
PREPARATIONS = [("ssd_300", images_of_300, 1), ("efficientdet_512", images_of_512, 1), ("rcnn_600", images_of_600, 1),
                ("rcnn_800", images_of_800, 1), ("matterport_1024", images_of_1024, 1), ("cifar_32", images_of_32, 1),
                ("wgan_64", images_of_64, 1), ("ncf", ratings, 1024), ("deep_speech2", utterances, 1),
                ("minigo", positions, 1), ("bert_squad", questions, BATCH), ("bert_pretraining", masked_words, BATCH),
                ("translation", sentences, BATCH)]


def times_of(prepare: Callable[[], object], samples: int, seconds: float) -> list[float]:
    """Returns the time of this thread for a sample in each call, in ms; calls for `seconds`, five at least."""
    prepare()
    times = []
    end = time.monotonic() + seconds
    while len(times) < 5 or time.monotonic() < end:
        before = time.thread_time()
        prepare()
        times.append(1e3 * (time.thread_time() - before) / samples)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-o", "--output", help="a CSV file (default: standard output)")
    parser.add_argument("--seconds", type=float, default=3, help="for each preparation")
    options = parser.parse_args()
    torch.set_num_threads(1)  # as in a process of a loader
    data = jpeg()
    with open(options.output, "w", newline="", encoding="utf-8") if options.output else sys.stdout as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["sample", "least_ms", "median_ms", "calls"])
        for name, make, samples in PREPARATIONS:
            times = times_of(make(data), samples, options.seconds)
            writer.writerow([name, f"{min(times):.4g}", f"{statistics.median(times):.4g}", len(times)])


if __name__ == "__main__":
    main()
