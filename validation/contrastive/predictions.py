"""Predicted times, memory and sizes against measured ones, for problems of all kinds.

Each prediction is followed at once by the run that it is of, because other programs make a machine faster and slower.
Runs that are predicted to take more than a minute are left out. Memory is what numpy allocates at the peak.

Prints a table, and the share of predictions that are right within factors of 2 and 3.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import xarray as xr

import meanfield
from meanfield.cli import DONE, run
from meanfield.explanation.prediction import Prediction, predictions
from meanfield.families.contrastive.problem import Problem
from meanfield.problems.file import parse_problem
from validation import ROOT

LONGEST = 60.0
"""Largest predicted time in seconds of a run that is made."""

SOLVERS: dict[str, Callable[[Problem], xr.Dataset]] = {
    "density": meanfield.solve_density,
    "order parameters": meanfield.solve_order_parameters,
    "dynamics": meanfield.analyse_dynamics,
    "stationary states": meanfield.find_stationary_states,
    "particles": meanfield.simulate_sgd,
}

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
    """The examples and variants of one problem."""
    examples = {path.stem: meanfield.load_problem(path) for path in sorted((ROOT / "data/problems").glob("*.toml"))}
    return examples | {name: parse_problem(TEXT.format(**DEFAULTS | changes)) for name, changes in VARIANTS.items()}


def measure(problem: Problem, prediction: Prediction, folder: Path) -> tuple[float, float, float]:
    """Seconds, bytes at the peak and bytes of the file, each over what was predicted."""
    solve = SOLVERS[prediction.method]
    started = time.perf_counter()
    result = solve(problem)
    seconds = time.perf_counter() - started
    meanfield.save(result, folder / "run.nc")
    memory = np.nan
    if seconds < LONGEST / 10:  # once more, because it slows down what is traced
        tracemalloc.start()
        solve(problem)
        memory = tracemalloc.get_traced_memory()[1] / prediction.memory
        tracemalloc.stop()
    return prediction.seconds / seconds, 1 / memory, prediction.file / (folder / "run.nc").stat().st_size


def main() -> int:
    """Predict, measure, compare."""
    print(f"{'problem':<26}{'method':<20}{'predicted':>10}{'measured':>10}{'ratio':>8}{'memory':>8}{'file':>7}")
    ratios = []
    with TemporaryDirectory() as folder:
        for name, problem in problems().items():
            for prediction in predictions(problem):
                if not prediction.applies or prediction.seconds > LONGEST:
                    continue
                ratio, memory, size = measure(problem, prediction, Path(folder))
                ratios.append(ratio)
                times = f"{prediction.seconds:9.2f} {prediction.seconds / ratio:9.2f}"
                print(f"{name:<26}{prediction.method:<20}{times}{ratio:8.2f}{memory:8.2f}{size:7.2f}", flush=True)
    factor = np.maximum(ratios, 1 / np.array(ratios))
    for most in (2, 3):
        print(f"within a factor of {most}: {np.mean(factor <= most):.0%} of {len(factor)}")
    return DONE


if __name__ == "__main__":
    run(main)
