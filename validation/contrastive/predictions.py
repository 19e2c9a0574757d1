"""Predicted times, memory and sizes against measured ones, for examples, variants and random problems.

Each run is the command in a fresh process on one core, as users run it, and its time is the processor time of that
process, start included, which other programs hardly change. Runs that are predicted to take more than a minute are left
out; one that takes ten times the prediction plus a minute counts as that long. Memory is the resident peak.

Prints a table, and the share of predictions that are right within factors of 2, 3 and 10.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import meanfield
from meanfield.cli import DONE, run
from meanfield.explanation.prediction import Prediction, predictions
from meanfield.families.contrastive.problem import Problem
from meanfield.problems.file import format_problem, parse_problem
from validation import ROOT
from validation.contrastive.random_problems import random_problem

LONGEST = 60.0
"""Largest predicted time in seconds of a run that is made."""

PYTHON_MEMORY = 300e6
"""Bytes that Python and its packages take."""

RANDOM_PROBLEMS = 50
"""Number of random problems, of the first seeds."""

METHODS = {"stationary states": "stationary"}
"""Methods whose name on the command line is not that of their prediction with underscores."""

TEXT = """
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


def problems() -> dict[str, Problem]:
    """The examples, variants of one problem, and random problems."""
    examples = {path.stem: meanfield.load_problem(path) for path in sorted((ROOT / "data/problems").glob("*.toml"))}
    variants = {name: parse_problem(TEXT.format(**DEFAULTS | changes)) for name, changes in VARIANTS.items()}
    return examples | variants | {f"random {seed}": random_problem(seed) for seed in range(RANDOM_PROBLEMS)}


def measure(problem: Problem, prediction: Prediction, folder: Path) -> tuple[float, float, float] | None:
    """Processor seconds, bytes at the peak and bytes of the file; None for a run that ends without a result."""
    file, result = folder / "problem.toml", folder / "run.nc"
    file.write_text(format_problem(problem))
    result.unlink(missing_ok=True)
    method = METHODS.get(prediction.method, prediction.method.replace(" ", "_"))
    most = int(LONGEST + 10 * prediction.seconds)
    command = [sys.executable, "solvers/solve.py", method, str(file), "-o", str(result)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)),
    )
    usage = os.wait4(process.pid, 0)[2]
    seconds = usage.ru_utime + usage.ru_stime
    if not result.exists() and seconds < most - 1:
        return None
    return seconds, 1024.0 * usage.ru_maxrss, result.stat().st_size if result.exists() else np.nan


def main() -> int:
    """Predict, measure, compare."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"{'problem':<26}{'method':<20}{'predicted':>10}{'measured':>10}{'ratio':>8}{'memory':>8}{'file':>7}")
    ratios = []
    with TemporaryDirectory() as folder:
        for name, problem in problems().items():
            for prediction in predictions(problem):
                if not prediction.applies or prediction.seconds > LONGEST:
                    continue
                measured = measure(problem, prediction, Path(folder))
                if measured is None:
                    print(f"{name:<26}{prediction.method:<20} no result", flush=True)
                    continue
                seconds, memory, size = measured
                ratios.append(ratio := prediction.seconds / seconds)
                others = f"{(PYTHON_MEMORY + prediction.memory) / memory:8.2f}{prediction.file / size:7.2f}"
                row = f"{prediction.seconds:10.2f}{seconds:10.2f}{ratio:8.2f}{others}"
                print(f"{name:<26}{prediction.method:<20}{row}", flush=True)
    factor = np.maximum(ratios, 1 / np.array(ratios))
    for most in (2, 3, 10):
        print(f"within a factor of {most}: {np.mean(factor <= most):.1%} of {len(factor)}; largest {factor.max():.1f}")
    return DONE


if __name__ == "__main__":
    run(main)
