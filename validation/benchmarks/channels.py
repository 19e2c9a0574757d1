"""How fast several channels are: averages over a batch, ODE, and the chain, against NumPy written from the formulas.

Two channels and two three-point features, sigma(x) = x^2, the square penalty, m = 2 for steps and m = 10 for averages,
unless said. NumPy takes averages without a penalty, for which one sample is enough, with all nodes of a product rule as
arrays; ours are checked to be the same. Its step is that of the chain: the same law, with random numbers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

import meanfield
from meanfield.contrastive import Problem
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.thresholds import collapse_threshold
from meanfield.families.contrastive.sgd.steppers import prepare_steppers
from meanfield.plotting import COLOURS
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import ONE_THREAD, seconds

Array = np.ndarray

MOMENTS = 1.1, 6.05
CENTERINGS = "none", "population", "batch"
LIMITS = {"none": 100.0, "population": 100.0, "batch": 2000.0}
"""Largest times of averages in microseconds."""

STEPS = 2000
NODES = 8
FIGURE = Path(__file__).with_suffix(".png")
FEATURES, CHANNELS = (1, 2, 3), (2, 3)
BATCHES = 2, 5, 10, 20, 50, 100


def make_problem(centering: str, m: int = 10, d1: int = 2, d2: int = 2, strength: float = 0.05) -> Problem:
    """Channels that have learnt a little of all features."""
    law = {"law": "three_point", "second_moment": MOMENTS[0], "fourth_moment": MOMENTS[1]}
    q = 0.1 + 0.3 * np.eye(d1, d2)
    data: dict[str, Any] = {
        "model": {
            "activation": "quadratic",
            "centering": centering,
            "learning_rate": 0.01,
            "batch_size": m,
            "channels": d2,
            "initial_channel_overlap": 0.2,
        },
        "decorrelation": {"strength": strength},
        "features": [{"hidden": law, "initial_overlap": row.tolist()} for row in q],
        "time": {"stop": 20.0, "outputs": 11},
        "particles": {"dimension": 10_000, "method": "chain"},
    }
    return Problem.model_validate(data)


def averaging(problem: Problem) -> Callable[[], object]:
    """Averages P, D and Lambda at the start of a problem."""
    closure = ChannelClosure(problem)
    q, M = np.array(problem.initial_overlap), np.array(problem.initial_channel_overlap)
    return lambda: closure(q, M)


def stepping(problem: Problem, steps: int = STEPS) -> Callable[[], None]:
    """Takes the next steps of one replica of the chain."""
    stepper, taken = prepare_steppers(problem, "chain")(range(1)), 0

    def advance() -> None:
        nonlocal taken
        stepper.advance(taken, steps)
        taken += steps

    return advance


class PlainNumPy:
    """Averages without a penalty, and steps of the chain, in NumPy.

    Parameters
    ----------
    problem : Problem
        With sigma(x) = x^2, no noise, and three-point features.
    """

    def __init__(self, problem: Problem) -> None:
        model = problem.model
        self._tau, self._m, self._N = model.learning_rate, model.batch_size, problem.particles.dimension
        self._strength, self._centering = problem.decorrelation_strength, model.centering
        self._q, M = np.array(problem.initial_overlap).T, np.array(problem.initial_channel_overlap)
        self._L = np.linalg.cholesky(M - self._q @ self._q.T)
        self._rng = np.random.default_rng(0)
        chance = MOMENTS[0] ** 2 / MOMENTS[1]
        self._values = np.array([-1.0, 0.0, 1.0]) * np.sqrt(MOMENTS[1] / MOMENTS[0])
        self._chances = np.array([chance / 2, 1 - chance, chance / 2])
        self._second = MOMENTS[0]

    def averages(self) -> tuple[Array, Array, Array]:
        """P, D and Lambda by a product rule of Gauss-Hermite nodes, from its nodes anew: they depend on q and M."""
        d2, d1 = self._q.shape
        x, weight = np.polynomial.hermite_e.hermegauss(NODES)
        weight /= weight.sum()
        e = np.array(list(product(x, repeat=d2))) @ self._L.T
        we = np.prod(list(product(weight, repeat=d2)), axis=1)
        c = np.array(list(product(self._values, repeat=d1)))
        wc = np.prod(list(product(self._chances, repeat=d1)), axis=1)
        theta = (c @ self._q.T)[:, None, :] + e
        w = wc[:, None] * we
        y = theta**2
        if self._centering != "none":
            y = y - np.einsum("ae,aek->k", w, y)
        gain = 2 * theta * y
        P = 2 * np.einsum("ae,aek,af->fk", w, gain, c)
        D = 2 * np.einsum("ae,aek,ael->kl", w, gain, theta)
        noise = 4 * self._tau**2 / self._m * np.einsum("ae,aek,ael->kl", w, gain, gain)
        return P, D, noise

    def step(self) -> None:
        """One step of the chain of q and the factor L of K."""
        (d2, d1), m, rng = self._q.shape, self._m, self._rng
        c = rng.choice(self._values, (d1, m), p=self._chances)
        x = np.concatenate([c, rng.standard_normal((d2, m))])
        X = np.concatenate([self._q, self._L], axis=1)
        z = X @ x
        y = z * z
        if self._centering == "batch":
            y = y - y.mean(axis=1, keepdims=True)
        elif self._centering == "population":
            y = y - (1 + (self._second - 1) * (self._q**2).sum(axis=1))[:, None]
        A = -2 * self._strength * (y @ y.T) / m
        np.fill_diagonal(A, 1.0)
        gain = 2 * z * (A @ y)
        rate = self._tau / (m * self._N)
        X = X + 2 * rate * gain @ x.T
        outside = np.sqrt(rng.chisquare(self._N - d1 - 2 * d2 + 1 + np.arange(d2)[::-1]))
        T = np.diag(outside) + np.tril(rng.standard_normal((d2, d2)), -1)
        root = np.linalg.cholesky(4 * gain @ gain.T + 1e-12 * np.eye(d2)) @ T
        K = X[:, d1:] @ X[:, d1:].T + rate**2 * root @ root.T
        scale = 1 / np.sqrt((X[:, :d1] ** 2).sum(axis=1) + np.diag(K))
        self._q = scale[:, None] * X[:, :d1]
        self._L = np.linalg.cholesky(scale[:, None] * K * scale)


def check(numpy: PlainNumPy, problem: Problem) -> None:
    """That NumPy computes the same averages.

    Raises
    ------
    RuntimeError
        If it does not: times would compare different things.
    """
    q, M = np.array(problem.initial_overlap), np.array(problem.initial_channel_overlap)
    for ours, theirs in zip(ChannelClosure(problem)(q, M), numpy.averages(), strict=True):
        if not np.allclose(ours, theirs, rtol=1e-9, atol=1e-12):  # rounding
            raise RuntimeError("averages by NumPy differ from ours")


def averages_table() -> Table:
    """Averages by centring, against NumPy where it has them."""
    rows = []
    for centering in CENTERINGS:
        (taken,) = seconds(averaging(make_problem(centering)))
        rows.append(
            Row(f"square penalty, centring {centering}", 1e6 * taken, "us", required=f"below {LIMITS[centering]:g} us")
        )
    for centering in CENTERINGS[:2]:
        problem = make_problem(centering, strength=0.0)
        numpy = PlainNumPy(problem)
        check(numpy, problem)
        ours, theirs = seconds(averaging(problem), numpy.averages)
        rows.append(Row(f"no penalty, centring {centering}", 1e6 * ours, "us", "NumPy", 1e6 * theirs))
    return Table("Averages of two channels and two features", ONE_THREAD, tuple(rows))


def ode_table() -> Table:
    """ODE to t = 20, and a threshold."""
    rows = []
    for centering in CENTERINGS:
        problem = make_problem(centering)
        run, threshold = seconds(
            lambda problem=problem: meanfield.solve_order_parameters(problem),  # type: ignore[misc]
            lambda problem=problem: collapse_threshold(problem),  # type: ignore[misc]
            rounds=3,
        )
        note = f"threshold of collapse {threshold:.2g} s"
        rows.append(Row(f"ODE to t = 20, centring {centering}", run, "s", required="below 0.2 s", note=note))
    return Table("ODE of two channels and two features", ONE_THREAD, tuple(rows))


def chain_table() -> Table:
    """Steps of the chain, against NumPy."""
    rows = []
    for centering in CENTERINGS:
        problem = make_problem(centering, m=2)
        ours, theirs = seconds(stepping(problem), PlainNumPy(problem).step)
        rows.append(Row(f"m = 2, centring {centering}", 1e6 * ours / STEPS, "us", "NumPy", 1e6 * theirs, "below 4 us"))
    return Table("One step of the chain of two channels and two features", ONE_THREAD, tuple(rows))


def growth_table() -> Table:
    """Averages and steps by numbers of features, channels and samples, with a figure."""
    by_size, steps = {}, {}
    for d1, d2 in product(FEATURES, CHANNELS):
        average = averaging(make_problem("population", d1=d1, d2=d2))
        by_size[d1, d2], step = seconds(average, stepping(make_problem("population", m=2, d1=d1, d2=d2)), rounds=3)
        steps[d1, d2] = step / STEPS
    by_batch = {m: seconds(stepping(make_problem("population", m=m)), rounds=3)[0] / STEPS for m in BATCHES}
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for d2, colour, fill in zip(CHANNELS, COLOURS, ("full", "none"), strict=False):
        for times, style, what in ((by_size, "o-", "averages"), (steps, "s--", "step")):
            values = [1e6 * times[d1, d2] for d1 in FEATURES]
            left.plot(FEATURES, values, style, color=colour, fillstyle=fill, label=f"{what}, $d_2 = {d2}$")
    left.set(yscale="log", xlabel="features $d_1$", ylabel="microseconds", xticks=FEATURES)
    left.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    right.semilogx(BATCHES, [1e6 * by_batch[m] for m in BATCHES], "s--", color=COLOURS[0])
    right.set(xlabel="batch size $m$", ylabel="microseconds of a step", ylim=(0, None))
    figure.savefig(FIGURE, dpi=120)
    rows = [
        *(Row(f"averages, d1 = {d1}, d2 = {d2}", 1e6 * taken, "us") for (d1, d2), taken in by_size.items()),
        *(Row(f"step, m = 2, d1 = {d1}, d2 = {d2}", 1e6 * taken, "us") for (d1, d2), taken in steps.items()),
        *(Row(f"step, m = {m}, d1 = d2 = 2", 1e6 * taken, "us") for m, taken in by_batch.items()),
    ]
    how = f"population centring; {ONE_THREAD}"
    return Table(
        "Growth with features, channels and samples", how, tuple(rows), "../validation/benchmarks/channels.png"
    )


def tables() -> Iterator[Table]:
    """All tables, with linear algebra on one thread."""
    with threadpool_limits(1):
        for table in (averages_table, ode_table, chain_table, growth_table):
            yield table()
