"""Problems whose predictions are measured: all examples, more of each family, and random ones."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from meanfield.problems.known_families import families
from validation import ROOT
from validation.contrastive.random_problems import random_text

UNUSUAL_PROBLEMS = Path(__file__).with_name("problems")
"""Folder of problems that are unlike the examples."""

IMAGES = "images-idx3-ubyte"
"""File of images that one of them names."""

TEXT = """
title = "{title}"
model = {{ activation = "{activation}", centering = "{centering}", learning_rate = {tau}, batch_size = 10 }}
features = [{features}]
{noise}
prior = {{ name = "{prior}", strength = {strength} }}
time = {{ stop = {stop}, outputs = 41 }}
density = {{ {density} }}
particles = {{ {particles} }}
"""

SPARSE = """{ hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }, initial_overlap = 0.5 }"""

DEFAULTS = {
    "activation": "quadratic",
    "centering": "none",
    "tau": 0.02,
    "features": SPARSE,
    "noise": "",
    "prior": "none",
    "strength": 1.0,
    "stop": 20.0,
    "density": "",
    "particles": "dimension = 1024",
}

LAPLACE = '{ hidden = { law = "laplace", second_moment = 2.0 }, initial_overlap = 0.4 }'
GAUSSIAN = '{ hidden = { law = "gaussian", second_moment = 1.5 }, initial_overlap = 0.3 }'

VARIANTS: dict[str, dict[str, object]] = {
    "ReLU, noise": {
        "activation": "relu",
        "centering": "population",
        "tau": 0.5,
        "noise": "augmentation = { variance = [0.3, 0.3] }",
        "particles": "dimension = 2000, replicas = 16",
    },
    "GELU, Laplace": {"activation": "gelu", "tau": 0.3, "features": LAPLACE},
    "quartic, 1e-8": {"prior": "quartic", "density": "tolerance = 1e-8", "particles": "dimension = 3000"},
    "strong l1": {"prior": "l1", "strength": 3.0, "density": "tolerance = 1e-4"},
    "smooth l1, two features": {"prior": "smooth_l1", "features": f"{LAPLACE}, {GAUSSIAN}"},
    "three features": {"features": f"{LAPLACE}, {GAUSSIAN}, {SPARSE}", "density": "tolerance = 1e-4"},
    "batch, tanh": {"activation": "tanh", "centering": "batch", "tau": 1.0, "particles": "dimension = 10000"},
    "fixed cells": {"density": "cells = 1600, steps = 2000", "particles": 'method = "plain", dimension = 1000'},
    "long": {"stop": 200.0, "particles": 'method = "chain", dimension = 100000, replicas = 2'},
}
"""Settings of one contrastive problem that cost more, or less, than its defaults."""


def write_problems(folder: Path, count: int) -> dict[str, Path]:
    """Problem files by name: those of the repository, and in a folder variants and random ones.

    Parameters
    ----------
    folder : Path
    count : int
        Number of random problems, of the first seeds.
    """
    found = {path.stem: path for path in sorted((ROOT / "data/problems").glob("*.toml"))}
    found |= {f"shortest, {family.name}": family.example_path for family in families()}
    found |= {path.stem: path for path in sorted(_copied(folder).glob("*.toml"))}
    texts = {name: TEXT.format(title=name, **DEFAULTS | changes) for name, changes in VARIANTS.items()}
    texts |= {f"random {seed}": random_text(seed) for seed in range(count)}
    for number, (name, text) in enumerate(texts.items()):
        found[name] = folder / f"{number}.toml"
        found[name].write_text(text)
    return found


def _copied(folder: Path) -> Path:
    """Copies of the other problems, with the images that one of them reads: noise costs what digits cost."""
    copies = folder / UNUSUAL_PROBLEMS.name
    copies.mkdir()
    for path in UNUSUAL_PROBLEMS.glob("*.toml"):
        (copies / path.name).write_bytes(path.read_bytes())
    pixels = np.random.default_rng(0).integers(0, 256, (1000, 28, 28), dtype=np.uint8)
    (copies / IMAGES).write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">3I", *pixels.shape) + pixels.tobytes())
    return copies
