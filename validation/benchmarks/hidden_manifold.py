"""How fast SGD on a hidden manifold is: plain steps against NumPy, PyTorch and the product alone, and the chain.

Two students and two teachers, erf units, delta = 1/2. A plain step draws D latents and multiplies them by the D x N
features; elsewhere this is done as a good user of NumPy or PyTorch would do it, one sample at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.random import SFC64, Generator
from threadpoolctl import threadpool_limits

from meanfield.families.hidden_manifold.particles.plain import SAMPLES
from meanfield.families.hidden_manifold.particles.steppers import STEPPERS
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.compiled.matrix_products import multiply, pack, tiles_for
from meanfield.problems.file import problem_from
from validation.benchmarks.sgd_elsewhere import INSTALLED
from validation.benchmarks.table import Row, Table, run_benchmark
from validation.benchmarks.timing import ONE_THREAD, seconds
from validation.hidden_manifold.sgd_against_theory import BASE, merged

RATE = 0.2
FUNCTIONS = ("sign", "scaled_erf", "tanh")
"""Nonlinearities of the inputs."""


def make_problem(N: int, changes: dict[str, Any]) -> Problem:
    """Problem of the studies with other inputs or another N."""
    problem: Problem = problem_from(merged(BASE, changes, {"particles": {"dimension": N}}))
    return problem


def stepping(method: str, problem: Problem, steps: int) -> Callable[[], None]:
    """Takes the next steps of one replica."""
    stepper, taken = STEPPERS[method](problem, range(1)), 0

    def advance() -> None:
        nonlocal taken
        stepper.advance(taken, steps)
        taken += steps

    return advance


class Elsewhere:
    """Plain SGD of one replica in NumPy or PyTorch, in double precision; the second layer is fixed."""

    def __init__(self, library: str, function: str, N: int) -> None:
        rng, D = Generator(SFC64(0)), N // 2
        F, W, Wt = rng.standard_normal((N, D)) / math.sqrt(D), rng.standard_normal((2, N)), rng.standard_normal((2, D))
        if library == "PyTorch":
            import torch

            self._lib: Any = torch
            self._erf: Any = torch.special.erf
            self._draw: Callable[[], Any] = lambda: torch.randn(D, dtype=torch.float64)
            F, W, Wt = (torch.from_numpy(array) for array in (F, W, Wt))
        else:
            from scipy.special import erf

            self._lib, self._erf = np, erf
            self._draw = lambda: rng.standard_normal(D)
        erf = self._erf
        functions = {"sign": self._lib.sign, "tanh": self._lib.tanh, "scaled_erf": lambda u: erf(u * math.sqrt(0.5))}
        self._f, self._F, self._W, self._Wt, self._N = functions[function], F, W, Wt / math.sqrt(D), N

    def advance(self, steps: int) -> None:
        """Take steps."""
        root, scale = math.sqrt(self._N), math.sqrt(0.5)
        for _ in range(steps):
            C = self._draw()
            x = self._f(self._F @ C)
            own, others = self._W @ x / root, self._Wt @ C
            error = self._erf(own * scale).sum() - self._erf(others * scale).sum()
            slope = math.sqrt(2.0 / math.pi) * self._lib.exp(-0.5 * own * own)
            self._W -= (RATE / root * error * slope)[:, None] * x


def product_alone(N: int) -> Callable[[], None]:
    """The product of features and latents of `SAMPLES` steps, by a library's product of matrices and by ours."""
    rng = np.random.default_rng(0)
    panels, tiles = pack(rng.standard_normal((N // 2, N))), tiles_for(SAMPLES, N // 2)
    out = np.empty((SAMPLES, panels.shape[0] * panels.shape[2]))
    return lambda: multiply(panels, tiles, SAMPLES, out)


def plain_table() -> Table:
    """Plain steps, against the same elsewhere, and against their product alone."""
    rows, steps = [], 2 * SAMPLES
    for N in (500, 1000, 2000):
        for function in FUNCTIONS:
            ours = stepping("plain", make_problem(N, {"inputs": {"nonlinearity": function}}), steps)
            theirs = [Elsewhere(library, function, N) for library in INSTALLED]
            works = [lambda sgd=sgd: sgd.advance(20) for sgd in theirs]  # type: ignore[misc]
            own, product, *others = seconds(ours, product_alone(N), *works)
            own, product = 1e6 * own / steps, 1e6 * product / SAMPLES
            rows.append(Row(f"f = {function}, N = {N}", own, "us", "product alone", product))
            for library, other in zip(INSTALLED, others, strict=True):
                rows.append(Row(f"the same, {library}", 1e6 * other / 20, "us", "ours", own))
    return Table("One plain step on a hidden manifold", ONE_THREAD, tuple(rows))


def chain_table() -> Table:
    """Steps of the chain by the number of its eigenvalues."""
    rows = []
    for eigenvalues in ([1.0], [0.4, 1.6], [0.2, 0.6, 1.0, 1.4, 1.8]):
        spectrum = {"law": "atoms", "eigenvalues": eigenvalues}
        changes = {"inputs": {"nonlinearity": "linear", "spectrum": spectrum}}
        small, large = seconds(*(stepping("chain", make_problem(N, changes), 1000) for N in (10**3, 10**9)))
        what = f"{len(eigenvalues)} eigenvalue(s), N = 1e9"
        rows.append(Row(what, 1e3 * large, "us", "at N = 1e3", 1e3 * small, "below 5 us"))
    return Table("One step of the chain on a hidden manifold", ONE_THREAD, tuple(rows))


def tables() -> Iterator[Table]:
    """All tables, with linear algebra on one thread."""
    if find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
    with threadpool_limits(1):
        for table in (plain_table, chain_table):
            yield table()


if __name__ == "__main__":
    run_benchmark(tables, __file__, __doc__)
