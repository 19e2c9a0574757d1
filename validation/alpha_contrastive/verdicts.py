"""Verdicts on pairs of methods: how often true pairs differ, and how often one that learns twice as fast is found.

Runs of SGD are grouped by 4, 8 and 16 and held against their limit, on random problems: densities on the circle and the
sphere, of points under several importances and of mixtures, and the law of a single filter, against runs that each draw
their start; exact flows of one layer and of two against runs that share it. Of true pairs 5 % should differ.

Steps are small and batches large: the bias of SGD is of the order of the learning rate and of one over the size of
batches, and the more runs there are the more of it they see. Problems are drawn with fixed seeds.

Writes a section of docs/verdicts.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import meanfield
from meanfield.cli import DONE, FAILED, run
from validation.verdicts import Pair, Rates, rates, right_and_twice_as_fast, study

REPLICAS = (4, 8, 16)

PROBLEMS_OF_EACH = 4

COMPARISONS = 15
"""Number of comparisons of sixteen runs, for each problem; of fewer runs there are more."""

OF_ONE_FILTER = 64
"""Least number of runs of a single filter whose distribution function is anywhere near Gaussian."""

STOP, OUTPUTS = 1.0, 3


def points(seed: int, dimension: int) -> dict[str, Any]:
    """Law of five random points with random probabilities."""
    rng = np.random.default_rng(seed)
    share = np.round(rng.dirichlet(np.full(5, 3.0)), 3)
    share[-1] = 1.0 - share[:-1].sum()
    return {
        "law": "points",
        "points": np.round(rng.normal(size=(5, dimension)), 2).tolist(),
        "probabilities": share.tolist(),
    }


def mixture(seed: int) -> dict[str, Any]:
    """Law of two random Gaussians in the plane."""
    means = np.round(np.random.default_rng(seed).normal(size=(2, 2)), 2).tolist()
    return {"law": "gaussian_mixture", "means": means, "covariance": 0.3, "probabilities": [0.4, 0.6]}


def tokens(seed: int) -> dict[str, Any]:
    """Law of tokens with random generators."""
    sizes = {"places": 4, "vocabulary": 5, "generators": 4, "tokens_per_place": 2, "pattern_tokens": 2}
    return {"law": "tokens", "seed": seed} | sizes


def kernel(kind: str, temperature: float) -> dict[str, Any]:
    """Importance of pairs; samples of a batch are drawn independently, so that a pair may be of one atom."""
    return {"kind": kind, "temperature": temperature, "diagonal": "include"}


UNIFORM = {"kind": "quadratic"}
START = {"law": "fourier", "cosine": [0.4], "sine": [0.2]}
WIDE = {"filters": {"count": 50}, "training": {"learning_rate": 0.02, "batch_size": 64}, "density": {"tolerance": 3e-3}}
SINGLE = {
    "filters": {"count": 1, "start": START},
    "training": {"learning_rate": 0.05, "batch_size": 16},
    "density": {"noise": True},
}
EXACT = {
    "filters": {"count": 10},
    "training": {"learning_rate": 0.004, "batch_size": 16},
    "population": {"finite_batch": True},
    "particles": {"common_start": True},
}

Tables = Callable[[int], dict[str, Any]]
"""Tables of a problem, by the seed of its random law."""

PROBLEMS: dict[str, tuple[str, Tables]] = {
    "circle, gaussian": (
        "density",
        lambda seed: (
            {"model": {"activation": "quadratic"}, "importance": kernel("gaussian", 0.5), "data": points(seed, 2)}
            | WIDE
        ),
    ),
    "circle, ReLU": (
        "density",
        lambda seed: {"model": {"activation": "relu"}, "importance": UNIFORM, "data": points(seed, 2)} | WIDE,
    ),
    "circle, InfoNCE": (
        "density",
        lambda seed: (
            {"model": {"activation": "quadratic"}, "importance": kernel("infonce", 1.0), "data": points(seed, 2)} | WIDE
        ),
    ),
    "sphere, ReLU": (
        "density",
        lambda seed: (
            {"model": {"activation": "relu"}, "importance": UNIFORM, "data": points(seed, 3)}
            | WIDE
            | {"density": {"tolerance": 2e-2}}
        ),
    ),
    "mixture, ReLU": (
        "density",
        lambda seed: {"model": {"activation": "relu"}, "importance": UNIFORM, "data": mixture(seed)} | WIDE,
    ),
    "one filter": (
        "density",
        lambda seed: (
            {"model": {"activation": "quadratic"}, "importance": kernel("gaussian", 0.5), "data": points(seed, 2)}
            | SINGLE
        ),
    ),
    "flow, circle": (
        "population",
        lambda seed: (
            {"model": {"activation": "quadratic"}, "importance": kernel("gaussian", 0.5), "data": points(seed, 2)}
            | EXACT
        ),
    ),
    "flow, sphere": (
        "population",
        lambda seed: {"model": {"activation": "quadratic"}, "importance": UNIFORM, "data": points(seed, 3)} | EXACT,
    ),
    "flow, tokens": (
        "population",
        lambda seed: (
            {"model": {"activation": "relu", "layers": 2, "outputs": 3}, "importance": UNIFORM, "data": tokens(seed)}
            | EXACT
        ),
    ),
}
"""Methods and problems, by what is compared with SGD."""


def sizes_of(name: str) -> tuple[int, ...]:
    """Numbers of runs in a group; runs of a single filter are no measure if they are few."""
    return (OF_ONE_FILTER, 2 * OF_ONE_FILTER) if name == "one filter" else REPLICAS


def pairs(name: str) -> Iterator[Pair]:
    """Predictions and runs of some random problems."""
    method, tables_of = PROBLEMS[name]
    for number in range(PROBLEMS_OF_EACH):
        seed = 100 * list(PROBLEMS).index(name) + number
        tables = tables_of(seed)
        count = max(sizes_of(name)) * COMPARISONS
        particles = {"replicas": count, "test_batches": 1, "seed": seed} | tables.get("particles", {})
        time = {"stop": STOP, "outputs": OUTPUTS}
        problem = meanfield.Problem(family="alpha_contrastive", **tables | {"particles": particles, "time": time})
        runs = meanfield.simulate_sgd(problem, workers=1)
        yield Pair(*right_and_twice_as_fast(problem, method, runs), runs)


def measured() -> Iterator[Rates]:
    """Shares of true pairs and of wrong ones that differ."""
    for name, (method, tables) in PROBLEMS.items():
        yield from rates(name, method, tables(0)["filters"]["count"], pairs(name), sizes_of(name))


ABOUT = (
    "Densities are judged by moments, G, W1 and KS at once, with runs that each draw their start; exact flows by "
    "moments, energies and scores, with runs that share it. Of these the mean is off by the order of the learning "
    "rate, a mean on the sphere by 0.1 of it at the rates 0.02, 0.01 and 0.005: half a step is allowed for that. Runs "
    "that draw their start scatter so much that few of them hide a density that is too fast."
)


def main() -> int:
    """Measure, write the section, and say whether the rates are as claimed."""
    return DONE if study("alpha_contrastive", measured(), "filters", ABOUT) else FAILED


if __name__ == "__main__":
    run(main)
