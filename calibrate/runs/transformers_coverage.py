#!/usr/bin/env python3
"""Captures a training step of every architecture of transformers, in its default configuration shortened to two layers.

    calibrate/runs/transformers_coverage.py -o coverage.csv [--only causal/llama,...] [--steps DIR]

Needs the package tbdsim, PyTorch and transformers; no GPU. Writes a line for each architecture: what it is, whether it was
captured, seconds of a core, the error otherwise. Architectures whose default configuration does not build, or that take other inputs than
the usual ones, fail with an error of their own, not with a CaptureError. About an hour on a core.
"""
import argparse
import csv
import pathlib
import signal
import sys
import time
from contextlib import suppress

import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import tbdsim

LAYERS, SECONDS = 2, 90
#: What may pass on the clock of the wall: an architecture may wait for something.
WALL = 10 * SECONDS
#: Tasks and transformers' table of the classes that do them.
TASKS = {"causal": "CAUSAL_LM", "masked": "MASKED_LM", "seq2seq": "SEQ_TO_SEQ_CAUSAL_LM", "image": "IMAGE_CLASSIFICATION",
         "segment": "SEMANTIC_SEGMENTATION", "audio": "AUDIO_CLASSIFICATION"}
COUNTS = ("num_hidden_layers", "encoder_layers", "decoder_layers", "n_layer", "num_layers", "n_layers", "num_decoder_layers")


def architectures():
    """(task/architecture, its configuration, its class) of all that are asked."""
    for task, table in TASKS.items():
        for name, found in getattr(modeling_auto, f"MODEL_FOR_{table}_MAPPING_NAMES").items():
            model = found if isinstance(found, str) else found[0]
            if hasattr(transformers, model):
                yield f"{task}/{name}", CONFIG_MAPPING[name], getattr(transformers, model)


def shortened(configuration):
    """A configuration of as few layers as are asked; keys that it refuses stay as they are."""
    for name in COUNTS:
        if isinstance(getattr(configuration, name, None), int):
            with suppress(Exception):
                setattr(configuration, name, min(LAYERS, getattr(configuration, name)))
    for name in ("layer_types", "mlp_layer_types"):
        if isinstance(getattr(configuration, name, None), (list, tuple)):
            with suppress(Exception):
                setattr(configuration, name, list(getattr(configuration, name))[: configuration.num_hidden_layers])
    for name in ("eos_token_id", "pad_token_id", "decoder_start_token_id"):
        if not isinstance(getattr(configuration, name, None), int) and (hasattr(configuration, name) or "decoder" in name):
            setattr(configuration, name, 0)
    if hasattr(configuration, "use_cache"):
        configuration.use_cache = False
    return configuration


def inputs_of(task, configuration, labels=32):
    """The usual inputs of a task, with labels, of a translator that many."""
    tokens = lambda length: torch.zeros(1, length, dtype=torch.long)
    if task in ("causal", "masked"):
        return {"input_ids": tokens(64), "labels": tokens(64)}
    if task == "seq2seq":
        return {"input_ids": tokens(64), "labels": tokens(labels)}
    if task == "image":
        size = getattr(configuration, "image_size", 224)
        size = size if isinstance(size, int) else 224
        return {"pixel_values": torch.zeros(1, 3, size, size), "labels": torch.zeros(1, dtype=torch.long)}
    if task == "segment":
        size = getattr(configuration, "image_size", 512)
        size = size if isinstance(size, int) else 512
        return {"pixel_values": torch.zeros(1, 3, size, size), "labels": torch.zeros(1, size, size, dtype=torch.long)}
    return {"input_values": torch.zeros(1, 16000), "labels": torch.zeros(1, dtype=torch.long)}


def late(*_):
    raise TimeoutError(f"not captured within {SECONDS} s of a core and {WALL} s")


def captured(task, configuration, model):
    """The step of an architecture: shortened, or, where it does not take that, whole; of a translator that only decodes with as many
    labels as tokens."""
    tries = [(shortened, 32), (lambda whole: whole, 32), *([(shortened, 64)] if task == "seq2seq" else [])]
    for change, labels in tries:
        try:
            made = change(configuration())
            inputs = inputs_of(task, made, labels)
            return tbdsim.capture(lambda: model(made), inputs, optimizer="adamw", precision="bf16")
        except TimeoutError:
            raise
        except Exception as error:
            first = error if change is shortened and labels == 32 else first
    raise first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="the CSV file to write")
    parser.add_argument("--only", default="", help="these alone, as causal/llama,masked/bert")
    parser.add_argument("--steps", type=pathlib.Path, help="a folder for the step files")
    given = parser.parse_args()
    only = set(given.only.split(",")) - {""}
    asked = [entry for entry in architectures() if not only or entry[0] in only]
    if missing := only - {entry[0] for entry in asked}:
        parser.error(f"--only: unknown: {', '.join(sorted(missing))}")
    signal.signal(signal.SIGPROF, late)
    signal.signal(signal.SIGALRM, late)
    done = 0
    with open(given.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["architecture", "captured", "seconds", "operators", "error"])
        for place, (name, configuration, model) in enumerate(asked, 1):
            print(f"\r{place} of {len(asked)}: {name:<50}", end="", file=sys.stderr, flush=True)
            begin = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.setitimer(signal.ITIMER_REAL, WALL)
            try:
                step = captured(name.split("/")[0], configuration, model)
                if given.steps:
                    step.save(given.steps / f"{name.replace('/', '_')}.step.json.gz")
                row = [True, f"{time.process_time() - begin:.2f}", len(step.operators), ""]
                done += 1
            except Exception as error:  # whatever a model raises is what is asked about
                row = [False, f"{time.process_time() - begin:.2f}", "", f"{type(error).__name__}: {error}".split("\n")[0]]
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.setitimer(signal.ITIMER_REAL, 0)
            writer.writerow([name, *row])
            file.flush()
    print(f"\n{done} of {len(asked)} captured", file=sys.stderr)


if __name__ == "__main__":
    main()
