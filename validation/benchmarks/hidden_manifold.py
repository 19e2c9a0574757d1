"""How fast SGD and order parameters of hidden manifolds are, against NumPy, PyTorch, SciPy and public code.

Two students and two teachers, erf units, delta = 1/2. A plain step draws D latents and multiplies them by the D x N
features; elsewhere this is done as a good user of NumPy or PyTorch would do it, one sample at a time, or many products
at once, which NumPy does best. Our product is in single precision, theirs in double.
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
from validation.benchmarks.hidden_manifold_order_parameters import order_parameter_tables
from validation.benchmarks.sgd_elsewhere import INSTALLED
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import ONE_THREAD, seconds
from validation.hidden_manifold.sgd_against_theory import BASE, merged

RATE = 0.2
FUNCTIONS = ("sign", "scaled_erf", "tanh")
"""Nonlinearities of the inputs."""

REQUIRED = {"NumPy": "5 and more", "PyTorch": "10 and more"}
"""Ratios of times at N = 1000."""


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
    """Plain SGD of one replica in NumPy or PyTorch, in double precision; the second layer is fixed.

    Parameters
    ----------
    library, function : str
    N : int
    samples : int
        Number of samples whose inputs are computed by one call.
    """

    def __init__(self, library: str, function: str, N: int, samples: int = 1) -> None:
        rng, D = Generator(SFC64(0)), N // 2
        F, W, Wt = rng.standard_normal((N, D)) / math.sqrt(D), rng.standard_normal((2, N)), rng.standard_normal((2, D))
        if library == "PyTorch":
            import torch

            self._lib: Any = torch
            self._erf: Any = torch.special.erf
            self._draw: Callable[[], Any] = lambda: torch.randn(samples, D, dtype=torch.float64)
            F, W, Wt = (torch.from_numpy(array) for array in (F, W, Wt))
        else:
            from scipy.special import erf

            self._lib, self._erf = np, erf
            self._draw = lambda: rng.standard_normal((samples, D))
        erf = self._erf
        functions = {"sign": self._lib.sign, "tanh": self._lib.tanh, "scaled_erf": lambda u: erf(u * math.sqrt(0.5))}
        self._f, self._F, self._W, self._Wt, self._N = functions[function], F, W, Wt / math.sqrt(D), N
        self._samples = samples

    def advance(self, steps: int) -> None:
        """Take steps, a multiple of `samples`."""
        root, scale = math.sqrt(self._N), math.sqrt(0.5)
        for _ in range(steps // self._samples):
            C = self._draw()
            teacher = self._erf(self._Wt @ C.T * scale).sum(0)
            for x, target in zip(self._f(C @ self._F.T), teacher, strict=True):
                own = self._W @ x / root
                slope = math.sqrt(2.0 / math.pi) * self._lib.exp(-0.5 * own * own)
                error = self._erf(own * scale).sum() - target
                self._W -= (RATE / root * error * slope)[:, None] * x


def product_alone(N: int) -> Callable[[], None]:
    """The product of features and latents of `SAMPLES` steps, in single precision."""
    rng = np.random.default_rng(0)
    panels, tiles = pack(rng.standard_normal((N // 2, N))).astype(np.float32), tiles_for(SAMPLES, N // 2)
    single = tiles.astype(np.float32)
    single[:] = rng.standard_normal(single.shape)
    out = np.empty((SAMPLES, panels.shape[0] * panels.shape[2]), np.float32)
    return lambda: multiply(panels, single, SAMPLES, out)


def plain_table() -> Table:
    """Plain steps, against the same elsewhere, and against their product alone."""
    rows, steps = [], 2 * SAMPLES
    for N in (500, 1000, 2000):
        for function in FUNCTIONS:
            ours = stepping("plain", make_problem(N, {"inputs": {"nonlinearity": function}}), steps)
            theirs = [Elsewhere(library, function, N) for library in INSTALLED]
            theirs.append(Elsewhere("NumPy", function, N, SAMPLES))
            works = [lambda sgd=sgd: sgd.advance(SAMPLES) for sgd in theirs]  # type: ignore[misc]
            own, product, *others = (1e6 * t / SAMPLES for t in seconds(ours, product_alone(N), *works))
            own *= SAMPLES / steps
            rows.append(Row(f"f = {function}, N = {N}", own, "us", "product alone", product))
            names = [*INSTALLED, f"NumPy, products of {SAMPLES} samples at once"]
            for name, other in zip(names, others, strict=True):
                required = REQUIRED.get(name, "") if N == 1000 else ""
                rows.append(Row(f"the same, {name}", other, "us", "ours", own, required))
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
        yield from order_parameter_tables()
