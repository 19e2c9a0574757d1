"""Time of a step of tables 2 and 3 on images: ResNet-18 and its projector on made-up pictures of the real size.

Five replicas take steps side by side, each on one core, as the command of docs/latent_tree_digits.md trains them: on
pictures of CIFAR-10 by InfoNCE of the batch and by the exact loss with two negatives, then on pictures of STL-10 one
replica by InfoNCE. `python -m validation.latent_tree.convolution_times` prints seconds of a step, and days of a row.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from meanfield.families.latent_tree.images.convolutional import ConvolutionalReplicas
from meanfield.families.latent_tree.images.problem import ImageProblem

SIDES = {"CIFAR-10": 32, "STL-10": 96}
LOSSES: dict[str, dict[str, Any]] = {
    "InfoNCE": {"kind": "nt_xent", "temperature": 0.5},
    "exact, H = 2": {"kind": "exact", "temperature": 0.5, "negatives": 2},
}
CASES = (("CIFAR-10", "InfoNCE", 5), ("CIFAR-10", "exact, H = 2", 5), ("STL-10", "InfoNCE", 1))
"""Set, row and number of replicas side by side."""

LONGEST = 40.0
"""Seconds after which no further step begins."""


def small_pictures() -> dict[str, Any]:
    """Pictures of 32 x 32 pixels."""
    return _pictures(SIDES["CIFAR-10"])


def large_pictures() -> dict[str, Any]:
    """Pictures of 96 x 96 pixels."""
    return _pictures(SIDES["STL-10"])


def _pictures(side: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"images": rng.integers(0, 256, (640, side, side, 3), dtype=np.uint8), "labels": np.arange(640) % 10}


def problem_of(which: str, row: str, channels: list[int], batch: int) -> ImageProblem:
    """The problem of the page on real images, on made-up pictures."""
    name = "small_pictures" if which == "CIFAR-10" else "large_pictures"
    augmentation = {"crop": 0.5, "flip": True, "intensity": 0.4}
    data: dict[str, Any] = {
        "data": {"law": "arrays", "images": f"{__spec__.name}:{name}", "augmentation": augmentation},
        "network": {"widths": [512, 128], "output_normalisation": True, "convolution": {"channels": channels}},
        "loss": LOSSES[row],
        "training": {"optimiser": "adam", "learning_rate": 0.01, "batch_size": batch},
        "time": {"stop": 1.0},
    }
    return ImageProblem.model_validate(data)


def seconds_of_step(which: str, row: str, channels: list[int], batch: int, longest: float) -> float:
    """Median time of the steps of one replica on the clock, after one of a small batch, which loads PyTorch."""
    ConvolutionalReplicas(problem_of(which, row, channels, 2), range(1)).step(0)
    stepper, times = ConvolutionalReplicas(problem_of(which, row, channels, batch), range(1)), []
    started = time.monotonic()
    while not times or time.monotonic() - started < longest:
        before = time.monotonic()
        stepper.step(len(times))
        times.append(time.monotonic() - before)
    return float(np.median(times))


def main() -> None:
    """Print the times of all cases."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--channels", type=int, nargs="+", default=[64, 128, 256, 512])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--longest", type=float, default=LONGEST, help="seconds for each case")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores; channels {given.channels}, batches of {given.batch}")
    for which, row, replicas in CASES:
        with ProcessPoolExecutor(replicas, get_context("spawn")) as pool:
            jobs = [
                pool.submit(seconds_of_step, which, row, given.channels, given.batch, given.longest)
                for _ in range(replicas)
            ]
            times = [job.result() for job in jobs]
        images = {"CIFAR-10": 50_000, "STL-10": 5_000}[which]
        days = max(times) * 500 * -(-images // given.batch) / 86_400
        print(f"{which}, {row}, {replicas} side by side: {min(times):.2f} to {max(times):.2f} s a step", end="; ")
        print(f"500 epochs of {images:,} images take {days:.3g} days", flush=True)


if __name__ == "__main__":
    main()
