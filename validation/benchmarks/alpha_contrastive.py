"""How long training takes at the size of the paper on nonlinearity in contrastive learning, beside PyTorch.

The network has two layers: ten places with 25 ReLU filters each for 20 tokens, batch normalisation, 50 normalised
outputs, and InfoNCE with batches of 128 pairs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

import meanfield
from meanfield.families.alpha_contrastive.laws import Tokens
from meanfield.families.alpha_contrastive.particles.simulation import Replicas
from meanfield.families.alpha_contrastive.population.solver import Flow
from meanfield.problems.file import problem_from
from validation.benchmarks.sgd_elsewhere import INSTALLED
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import ONE_THREAD, seconds

STEPS = 5000
"""Batches of a run of the paper."""

TEMPERATURE, RATE, MOMENTUM, DECAY = 0.1, 0.02, 0.9, 5e-3
"""T, and the numbers of SGD on the cross entropy of similarities over T; see the theory page, section 5."""

PAPER: dict[str, Any] = {
    "family": "alpha_contrastive",
    "model": {
        "layers": 2,
        "activation": "relu",
        "outputs": 50,
        "normalise_outputs": True,
        "unit_filters": False,
        "unit_top": False,
        "batch_norm": {"active": True},
    },
    "importance": {"kind": "infonce", "temperature": TEMPERATURE, "epsilon": 1.0, "argument": "views"},
    "data": {
        "law": "tokens",
        "places": 10,
        "vocabulary": 20,
        "generators": 40,
        "tokens_per_place": 5,
        "pattern_tokens": 5,
        "seed": 1,
    },
    "filters": {"count": 25, "start": {"law": "fan_in"}},
    "training": {
        "learning_rate": 2.0 * RATE / TEMPERATURE,
        "batch_size": 128,
        "momentum": MOMENTUM,
        "weight_decay": 0.5 * DECAY * TEMPERATURE,
    },
    "time": {"stop": STEPS * 2.0 * RATE / TEMPERATURE, "outputs": 6},
    "particles": {"replicas": 1},
}


def ours() -> Callable[[], None]:
    """A step of this package."""
    stepper, calls = Replicas(problem_from(PAPER), range(1)), count()
    return lambda: stepper.advance(next(calls), 1)


def in_pytorch() -> Callable[[], None]:
    """Step of SGD by automatic differentiation, with batches drawn at once, and all places in one product."""
    import torch

    data = problem_from(PAPER).data
    assert isinstance(data, Tokens)
    rows = torch.from_numpy(data.rows)
    K, d, M, N, outputs = data.places, data.vocabulary, 25, 128, 50
    start = np.random.default_rng(0)
    w = torch.tensor(start.uniform(-1, 1, (K, d, M)) / np.sqrt(d), requires_grad=True)
    V = torch.tensor(start.uniform(-1, 1, (K * M, outputs)) / np.sqrt(K * M), requires_grad=True)
    norm = torch.nn.BatchNorm1d(K * M, affine=False, track_running_stats=False, dtype=torch.float64)
    optimiser = torch.optim.SGD([w, V], lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)
    places, own = torch.arange(K), torch.arange(N)

    def view(chosen: Any) -> Any:
        tokens = torch.where(chosen < 0, torch.randint(d, (N, K)), chosen)
        hidden = norm(torch.relu(w[places, tokens]).reshape(N, -1))
        return torch.nn.functional.normalize(hidden @ V)

    def step() -> None:
        chosen = rows[torch.randint(len(rows), (N,))]
        z, other = view(chosen), view(chosen)
        logits = z @ z.T / TEMPERATURE
        logits = torch.diagonal_scatter(logits, (z * other).sum(dim=1) / TEMPERATURE)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits, own).backward()
        optimiser.step()

    return step


def tables() -> Iterator[Table]:
    """Times of a run of SGD, and of a rate of change of the exact flow."""
    works = [ours(), *([in_pytorch()] if "PyTorch" in INSTALLED else [])]
    found = [STEPS * each for each in seconds(*works)]
    what = f"SGD, {STEPS:,} batches of 128"
    rows = [Row(what, found[0], "s", "PyTorch" if found[1:] else "", *found[1:], required="10 s at most")]
    rows.append(Row(what, found[0], "s", "the paper's public code", 185.0, note="timed on another day"))
    uniform = {"importance": {"kind": "quadratic"}, "model": PAPER["model"] | {"normalise_outputs": False}}
    problem = problem_from(PAPER | uniform)
    flow = Flow(problem)
    (stretch,) = flow.in_time.stretches(problem.time.stop)
    (rate,) = seconds(lambda: flow.rate(stretch, 0.0, flow.start))
    rows.append(Row("rate of change of the exact flow, uniform importance", 1e3 * rate, "ms", required="1 ms at most"))
    yield Table("Two layers at the paper's size", ONE_THREAD, tuple(rows))
    yield Table("Critical points of a mixture in five coordinates", ONE_THREAD, tuple(points_of_mixtures()))


def points_of_mixtures() -> Iterator[Row]:
    """Times of searches for all filters at rest, of three components with a variance of 0.1."""
    means = np.random.default_rng(1).standard_normal((3, 5))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    law = {"law": "gaussian_mixture", "probabilities": [1 / 3] * 3, "means": means.tolist(), "covariance": 0.1}
    for activation, kind in (("relu", "quadratic"), ("relu", "gaussian"), ("relu", "infonce"), ("tanh", "quadratic")):
        importance = {"kind": kind, "temperature": 0.3}
        given = {
            "family": "alpha_contrastive",
            "model": {"activation": activation},
            "data": law,
            "importance": importance,
        }
        problem = problem_from(given)
        start = time.process_time()
        meanfield.solve(problem, "critical_points")
        what = f"{activation}, importance {kind}"
        yield Row(what, time.process_time() - start, "s", required="20 s at most")
