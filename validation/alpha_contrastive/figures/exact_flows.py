"""Exact flows against plain SGD: InfoNCE on tokens, two layers given z, one layer, a fast top, normalisation.

Each flow is held against SGD in NumPy that draws batches, differentiates by hand, and shares no code with the library;
one that is a quarter faster has to be refused. Means over runs are continued to steps of 0. A flow that is right is
refused in 1 % of seeds at most, for each case: Student's law and Bonferroni's bound over all weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from meanfield.problems.file import problem_from
from validation.alpha_contrastive.figures.one_layer import FIVE, make_problem, push
from validation.flows import Case, study_of

Array = np.ndarray
Draw = Callable[[np.random.Generator, tuple[int, int]], list[Array]]

TEMPERATURE = 0.3
BOTH = "weights", "top"


def draw_tokens(rows: Array, d: int) -> Draw:
    """Two views of the same generator, whose open places (-1) hold any token, shape (runs, N, places, d) each."""

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> list[Array]:
        row = rows[rng.integers(len(rows), size=size)]
        return [np.eye(d)[np.where(row < 0, rng.integers(d, size=row.shape), row)] for _ in range(2)]

    return draw


def draw_gaussians(law: dict[str, Any]) -> Draw:
    """Two views of the same z, Gaussian at each place."""
    root, means_, p = np.linalg.cholesky(np.array(law["covariance"])), np.array(law["means"]), law["probabilities"]

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> list[Array]:
        centre = means_[np.arange(len(means_)), rng.choice(len(p), size=size, p=p)[..., None]]
        return [centre + rng.standard_normal(centre.shape) @ root.T for _ in range(2)]

    return draw


def draw_points(law: dict[str, Any]) -> Draw:
    """Two views of the same z, one of a few points at each place."""
    points, edges = np.array(law["points"]), np.cumsum(law["chances"], axis=-1)

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> list[Array]:
        places = np.arange(len(points))
        edge = edges[places, rng.choice(edges.shape[1], size=size, p=law["probabilities"])[..., None], :-1]
        return [points[places, (rng.random(edge.shape[:-1])[..., None] > edge).sum(axis=-1)] for _ in range(2)]

    return draw


def unit(x: Array, axes: int) -> Array:
    """Arrays of length 1 along the last axes."""
    return np.asarray(x / np.sqrt((x * x).sum(axis=tuple(range(-axes, 0)), keepdims=True)))


def forces(y: list[Array], tau: float) -> list[Array]:
    """Gradients of the energy by the outputs of both views, InfoNCE held fixed; uniform for an infinite temperature."""
    N = y[0].shape[1]
    alpha = np.ones((len(y[0]), N, N)) - np.eye(N)
    if np.isfinite(tau):
        square = (y[0] * y[0]).sum(axis=-1)
        alpha *= np.exp((y[0] @ y[0].mT - 0.5 * (square[:, :, None] + square[:, None])) / tau)
        alpha *= N / alpha.sum(axis=2, keepdims=True)
    apart, both = alpha.sum(axis=2)[..., None] * (y[0] - y[1]), alpha + alpha.mT
    return [(both.sum(axis=2)[..., None] * y[0] - both @ y[0] - apart) / (2 * N**2), apart / (2 * N**2)]


def train_two_layers(
    w: Array, v: Array, draw: Draw, tau: float, rng: np.random.Generator, runs: int, N: int, eta: float, steps: int
) -> Array:
    """Weights of runs of SGD: ReLU filters of length 1, shape (places, filters, d), and a top of length 1."""
    w, v = np.tile(unit(w, 1), (runs, 1, 1, 1)), np.tile(unit(v, 2), (runs, 1, 1))
    for _ in range(steps):
        x = draw(rng, (runs, N))
        z = [np.einsum("rkma,rnka->rnkm", w, view, optimize=True) for view in x]
        f = [np.maximum(part, 0.0).reshape(runs, N, -1) for part in z]
        by_v, by_w = np.zeros_like(v), np.zeros_like(w)
        for view, before, after, force in zip(x, z, f, forces([part @ v.mT for part in f], tau), strict=True):
            by_v += force.mT @ after
            back = (force @ v).reshape(before.shape) * (before > 0.0)
            by_w += np.einsum("rnkm,rnka->rkma", back, view, optimize=True)
        w = unit(w + eta * (by_w - (by_w * w).sum(axis=-1, keepdims=True) * w), 1)
        v = unit(v + eta * (by_v - (by_v * v).sum(axis=(1, 2), keepdims=True) * v), 2)
    return np.concatenate([w.reshape(runs, -1), v.reshape(runs, -1)], axis=1)


def train_circle(
    theta: Array, tau: float, rng: np.random.Generator, runs: int, N: int, eta: float, steps: int
) -> Array:
    """Weights of runs of SGD on one layer of ReLU filters at five points of the plane, by their angles."""
    theta = np.tile(theta, (runs, 1))
    for _ in range(steps):
        theta = theta + eta * push(FIVE, theta, tau, rng.multinomial(N, FIVE.probabilities, size=runs) / N)
    return np.stack([np.cos(theta), np.sin(theta)], axis=-1).reshape(runs, -1)


def strings(rows: Array, d: int) -> tuple[Array, Array]:
    """One-hot inputs of all strings that generators make, and their probabilities."""
    every = np.indices((d,) * rows.shape[1]).reshape(rows.shape[1], -1).T
    p = np.mean([np.prod(np.where(row < 0, 1.0 / d, every == row), axis=1) for row in rows], axis=0)
    return np.eye(d)[every[p > 0.0]], p[p > 0.0]


def train_fast_top(
    rows: Array, w: Array, norm: bool, rng: np.random.Generator, runs: int, N: int, eta: float, steps: int
) -> Array:
    """Weights of runs of SGD on ReLU filters of length 1, one a place, under the best top layer for all strings."""
    x, p = strings(rows, w.shape[1])
    w, own = np.tile(unit(w, 1), (runs, 1, 1)), np.arange(runs)[:, None]
    for _ in range(steps):
        f = np.maximum(np.einsum("ska,rka->rsk", x, w, optimize=True), 0.0)
        apart = f - (p @ f)[:, None]
        if norm:
            apart = apart / np.sqrt(p @ apart**2)[:, None]
        top = np.linalg.eigh((apart * p[:, None]).mT @ apart)[1][..., -1]
        drawn = rng.choice(len(p), size=(runs, N), p=p)
        f, batch = f[own, drawn], x[drawn]
        if norm:  # whose gradients do not pass through the deviations of a batch
            top = top / f.std(axis=1)
        y = np.einsum("rnk,rk->rn", f, top)
        back = (y - y.mean(axis=1, keepdims=True))[..., None] * (f > 0.0) * top[:, None] / N
        slope = np.einsum("rnk,rnka->rka", back, batch, optimize=True)
        w = unit(w + eta * (slope - np.sum(slope * w, axis=2, keepdims=True) * w), 1)
    return w.reshape(runs, -1)


def cases() -> dict[str, Case]:
    """All cases, with random laws and starts."""
    rng = np.random.default_rng(7)
    rows = np.array([rng.permutation([*rng.integers(5, size=3), -1, -1, -1]) for _ in range(4)])
    tokens = {"law": "tokens", "places": 6, "vocabulary": 5, "patterns": rows.tolist()}
    shared = {"law": "conditional", "probabilities": [0.3, 0.25, 0.2, 0.15, 0.1]}
    gaussians = shared | {
        "means": rng.normal(size=(4, 5, 3)).round(2).tolist(),
        "covariance": (0.3 * np.eye(3)).tolist(),
    }
    chances = rng.multinomial(20, [0.25] * 4, size=(4, 5)) / 20
    points = shared | {"points": rng.normal(size=(4, 4, 3)).round(2).tolist(), "chances": chances.tolist()}

    def drawn(places: int, filters: int, d: int) -> tuple[Array, Array]:
        return rng.normal(size=(places, filters, d)), rng.normal(size=(3, places * filters))

    def problem(w: Array, v: Array, law: dict[str, Any], importance: dict[str, Any], stop: float, **more: Any) -> Any:
        start = {"law": "points", "values": w.reshape(-1, w.shape[-1]).tolist(), "top": v.tolist()}
        model = {"activation": "relu", "layers": 2, "outputs": len(v)} | more.pop("model", {})
        tables = {"family": "alpha_contrastive", "model": model, "data": law, "importance": importance} | more
        return problem_from(tables | {"filters": {"count": w.shape[1], "start": start}, "time": {"stop": stop}})

    uniform: dict[str, Any] = {"kind": "quadratic"}
    infonce = {"kind": "infonce", "temperature": TEMPERATURE, "argument": "views"}
    exact = {"population": {"finite_batch": True}, "training": {"batch_size": 8}}
    fast = {"population": {"fast_top": True, "finite_batch": True}, "training": {"batch_size": 16}}
    found = {}
    w, v = drawn(6, 3, 5)
    w += 1.0
    learn = partial(train_two_layers, w, v, draw_tokens(rows, 5), TEMPERATURE)
    found["infonce"] = Case("InfoNCE on tokens", problem(w, v, tokens, infonce, 4.0), learn, (128, 256), 20, 32, BOTH)
    given = {"Points": (points, draw_points, 400, 500), "Gaussians": (gaussians, draw_gaussians, 100, 1000)}
    for name, (law, draw, steps, runs) in given.items():
        w, v = drawn(4, 3, 3)
        learn = partial(train_two_layers, w, v, draw(law), np.inf)
        found[name] = Case(
            f"{name}, given z", problem(w, v, law, uniform, 3.0, **exact), learn, (8, 8), steps, runs, BOTH
        )
    theta = rng.uniform(-np.pi, np.pi, 30)
    circle = {"law": "points", "values": np.stack([np.cos(theta), np.sin(theta)], axis=1).tolist()}
    tables = exact | {"filters": {"count": 30, "start": circle}, "time": {"stop": 3.0}, "temperature": TEMPERATURE}
    learn = partial(train_circle, theta, TEMPERATURE)
    found["circle"] = Case(
        "one layer, ReLU", make_problem("relu", FIVE.table, "gaussian", **tables), learn, (8, 8), 150, 1000
    )
    w, v = drawn(6, 1, 5)
    w += 1.0
    alone = tokens | {"augmentation": False}
    learn = partial(train_fast_top, rows, w[:, 0], False)
    found["fast_top"] = Case("fast top", problem(w, v, alone, uniform, 2.0, **fast), learn, (16, 16), 50, 500)
    norm = {
        "population": {"fast_top": True},
        "model": {"batch_norm": {"active": True, "differentiate_variance": False}},
    }
    learn = partial(train_fast_top, rows, w[:, 0], True)
    found["norm"] = Case("batch normalisation", problem(w, v, alone, uniform, 0.3, **norm), learn, (512, 1024), 40, 64)
    return found


STUDY = study_of(cases)
