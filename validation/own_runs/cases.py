"""Random cases of own training runs: problems, and NumPy loops whose data are those of the problem, or break it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import meanfield

Array = np.ndarray

N, RUNS, SAMPLES, STOCK = 1000, 8, 2000, 300


def noisy_regression(y: Any, s: Any, eps: Any, rate: float, sigma: float) -> Any:
    """Step of linear regression on labels with noise."""
    return rate * (y + sigma * eps - s)


class Case(NamedTuple):
    """What is trained, and on what.

    Parameters
    ----------
    problem : Problem
    broken : str
        What does not hold, one of `validation.own_runs.reasons.KINDS`, or nothing.
    heavy : bool
        Whether entries of inputs are of Student's law.
    seed : int
    """

    problem: Any
    broken: str
    heavy: bool
    seed: int


def case_of(seed: int, broken: str) -> Case:
    """Random case."""
    rng = np.random.default_rng(seed)
    kinds = {"hidden law": ["contrastive"], "mass on few coordinates": ["l1"], "": ["contrastive", "regression", "l1"]}
    kind = rng.choice(kinds.get(broken, ["contrastive", "regression"]))
    time = {"stop": 3.0, "outputs": 7}
    particles = {"dimension": N, "replicas": RUNS, "snapshots": [0.0]}
    if kind == "regression":
        problem = meanfield.Problem(
            family="update_rule",
            model={
                "rule": "validation.own_runs.cases:noisy_regression",
                "rule_parameters": {"rate": round(rng.uniform(0.3, 0.8), 2), "sigma": round(rng.uniform(0.3, 0.8), 2)},
                "batch_size": 2,
            },
            data={"normals": ["eps"]},
            features=[{"initial_overlap": round(rng.uniform(0.0, 0.3), 2)}],
            time=time,
            particles=particles | {"method": "plain"},
        )
    else:
        tables = {"prior": {"name": "l1", "strength": 2.0}} if kind == "l1" else {}
        count = 1 if kind == "l1" else int(rng.integers(1, 3))
        tanh = kind != "l1" and rng.random() < 0.3
        problem = meanfield.Problem(
            model={
                "activation": "tanh" if tanh else "quadratic",
                "learning_rate": 0.3 if tanh else 0.06,
                "batch_size": 4,
            },
            features=[_feature(rng) for _ in range(count)],
            time=time,
            particles=particles,
            **tables,
        )
    return Case(problem, broken, not broken and rng.random() < 0.4, seed)


def _feature(rng: np.random.Generator) -> dict[str, Any]:
    moment = round(rng.uniform(0.9, 1.4), 2)
    sparse = {"law": "three_point", "second_moment": moment, "fourth_moment": round(5.0 * moment**2, 3)}
    law = sparse if rng.random() < 0.6 else {"law": "laplace", "second_moment": moment}
    return {"hidden": law, "initial_overlap": round(rng.uniform(0.3, 0.6), 2)}


def features_of(rng: np.random.Generator, count: int) -> Array:
    """Orthogonal features of length sqrt(N) of each run, shape (runs, N, count)."""
    return np.sqrt(N) * np.linalg.qr(rng.standard_normal((RUNS, N, count)))[0]


def inputs_of(case: Case, U: Array, rng: np.random.Generator) -> Callable[[int], Array]:
    """Function of a number of samples that draws so many of each run, shape (runs, samples, N)."""
    laws = getattr(case.problem, "hidden_laws", ())
    root = _covariance_root(rng) if case.broken == "correlated inputs" else None
    factor = rng.uniform(1.5, 2.0) if rng.random() < 0.5 else rng.uniform(0.5, 0.65)

    def fresh(count: int) -> Array:
        if case.heavy:
            a = rng.standard_t(5, (RUNS, count, N)) * np.sqrt(3 / 5)
        else:
            a = rng.standard_normal((RUNS, count, N))
        if root is not None:
            a = a @ root
        if laws:
            c = np.concatenate([law.sample(rng, (RUNS, count)) for law in laws], axis=2)
            if case.broken == "hidden law":
                c = _of_another_law(c, factor, rng)
            a = a - (a @ U / N) @ U.swapaxes(1, 2) + c @ U.swapaxes(1, 2) / np.sqrt(N)
        if case.broken == "common radius":
            a = a * np.sqrt(3 / rng.chisquare(5, (RUNS, count, 1)))
        return a

    if case.broken != "repeated samples":
        return fresh
    stock = fresh(STOCK)
    return lambda count: stock[np.arange(RUNS)[:, None], rng.integers(STOCK, size=(RUNS, count))]


def _of_another_law(c: Array, factor: float, rng: np.random.Generator) -> Array:
    """Hidden variables of another second moment, or Gaussian ones of the same."""
    if factor > 1.0:
        return np.sqrt(factor) * c
    return np.sqrt((c**2).mean()) * rng.standard_normal(c.shape)


def _covariance_root(rng: np.random.Generator) -> Array:
    """Root of a covariance of trace N: of a moving average, or of variances that differ in random directions."""
    if rng.random() < 0.5:
        rho = rng.uniform(0.5, 0.7)
        values, vectors = np.linalg.eigh(rho ** np.abs(np.subtract.outer(np.arange(N), np.arange(N))))
    else:
        values, vectors = np.exp(rng.uniform(-1.2, 1.2, N)), np.linalg.qr(rng.standard_normal((N, N)))[0]
    return (vectors * np.sqrt(values / values.mean())) @ vectors.T


def start_of(case: Case, U: Array, rng: np.random.Generator) -> Array:
    """Weights at the start, shape (runs, N)."""
    q = np.array([feature.initial_overlap for feature in case.problem.features], dtype=float)
    g = rng.standard_normal((RUNS, N))
    if case.broken == "mass on few coordinates":
        g[:, rng.integers(3, 9) :] = 0.0
    g -= np.einsum("rnk,rk->rn", U, np.einsum("rnk,rn->rk", U, g)) / N
    return U @ q + np.sqrt(1 - q @ q) * np.sqrt(N) * g / np.linalg.norm(g, axis=1, keepdims=True)


def train(case: Case) -> tuple[xr.Dataset, Array]:
    """Runs of a case as a result with samples of the inputs, and the labels of these."""
    rng = np.random.default_rng([case.seed, 1])
    problem, d = case.problem, len(case.problem.features)
    U = features_of(rng, d)
    draw, w = inputs_of(case, U, rng), start_of(case, U, rng)
    m, steps = problem.model.batch_size, round(problem.time.stop * N)
    outputs, sampled = np.rint(problem.time.outputs_at * N), np.linspace(0, steps - 1, SAMPLES // m).astype(int)
    numbers = dict(getattr(problem.model, "rule_parameters", {}))
    rate, sigma = numbers.get("rate") or problem.model.learning_rate, numbers.get("sigma", 0.0)
    if case.broken == "step":
        factor = rng.uniform(1.7, 2.5)
        rate, sigma = (rate, factor * sigma) if sigma and rng.random() < 0.5 else (factor * rate, sigma)
    weights, samples, labels = [], [], []
    for k in range(steps + 1):
        if k in outputs:
            weights.append(w[..., None] if sigma else w)
        x = draw(m)
        s = np.einsum("rmn,rn->rm", x, w) / np.sqrt(N)
        if sigma:
            y = np.einsum("rmn,rn->rm", x, U[..., 0]) / np.sqrt(N) + sigma * rng.standard_normal(s.shape)
            gain = y - s
        else:
            y, gain = s, 4 * s**3 if problem.model.activation == "quadratic" else 2 * np.tanh(s) / np.cosh(s) ** 2
        if k in sampled:
            samples.append(x[0])
            labels.append(y[0])
        w = w + rate / m / np.sqrt(N) * np.einsum("rm,rmn->rn", gain, x)
        if not sigma:
            w = w - rate / N * problem.prior.force(w)
            w *= np.sqrt(N) / np.linalg.norm(w, axis=1, keepdims=True)
    own = meanfield.runs(problem, steps=outputs, weights=np.stack(weights, axis=1), U=U)
    return own.assign(samples=(("sample", "coordinate"), np.concatenate(samples))), np.concatenate(labels)
