"""The vector field b(q) = dq/dt of the reduced ODEs, its Jacobian, and which problems have one.

With a linear phi the overlaps close: b = q (q.g - Lambda/2) - g, since a linear phi acts on the norm alone, which the
projection restores. Source: theory.md, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem, check_no_velocity, check_one_channel
from meanfield.mckean_vlasov import order_parameters as of_overlaps
from meanfield.mckean_vlasov.closures import ClosureFunction
from meanfield.problems.base import check_problem
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray


def check_closes(problem: Problem) -> None:
    """Refuse problems without a vector field of the overlaps of one channel.

    Raises
    ------
    InputError
        If phi is not linear, or there are several channels.
    """
    check_linear(problem)
    check_one_channel(problem, "portraits, learnability and escape from random starts")


def check_linear(problem: Problem) -> None:
    """Refuse problems whose overlaps do not close by themselves.

    Raises
    ------
    InputError
        If phi is not linear, or weights have a velocity that lasts.
    """
    check_problem(problem, Problem)
    check_no_velocity(problem)
    several = problem.model.channels > 1
    of_overlaps.check_linear(problem.prior, "SGD" if several else "the density, stationary states or SGD")


class VectorField:
    """Vector field b(q) of one problem and its Jacobian db/dq, inside the unit ball.

    Parameters
    ----------
    problem : Problem
        Problem with a prior that closes the ODEs.
    closure : Closure, optional
        That of the problem, if it is known already.

    Raises
    ------
    InputError
        If the prior does not close the ODEs.
    """

    def __init__(self, problem: Problem, closure: Closure | None = None) -> None:
        check_closes(problem)
        self.problem = problem
        self.closure = Closure(problem) if closure is None else closure
        self._rates: ClosureFunction = self.closure
        self.features = len(problem.features)
        self._bar: Any = None

    def driven_by(self, rates: ClosureFunction) -> VectorField:
        """The same with other g and Lambda, such as those of a time."""
        other = copy(self)
        other._rates = rates
        return other

    @contextmanager
    def watched(self, label: str) -> Iterator[None]:
        """Context in which evaluations are counted by a progress bar."""
        before = self._bar
        with progress_bar(math.inf, label, " evaluations") as self._bar:
            try:
                yield
            finally:
                self._bar = before

    def __call__(self, q: FloatArray) -> FloatArray:
        """Velocity b(q), of the shape of q: (d1,), or (..., d1) for many points; NaN outside the unit ball."""
        q = np.asarray(q, dtype=float)
        points = q.reshape(-1, self.features)
        inside = np.einsum("nf,nf->n", points, points) <= 1.0
        values = np.full(points.shape, np.nan)
        for i in np.flatnonzero(inside):
            values[i] = of_overlaps.rate(self._rates, points[i])
            if self._bar is not None:
                self._bar.update()
        return values.reshape(q.shape)

    def jacobian(self, q: FloatArray) -> FloatArray:
        """Jacobian db/dq, shape (d1, d1), by central differences of fourth order; NaN outside the unit ball."""
        # Truncation and rounding of differences of fourth order are then about 1e-13 of the field.
        step = min(1e-3, 0.2 * (1.0 - float(np.linalg.norm(q))))
        if not step > 0.0:
            return np.full((self.features, self.features), np.nan)
        shifts = step * np.array([-2.0, -1.0, 1.0, 2.0])[:, None, None] * np.eye(self.features)
        ahead = self(q + shifts)  # shift, direction, component
        return np.asarray(np.einsum("s,sdc->cd", np.array([1.0, -8.0, 8.0, -1.0]) / (12.0 * step), ahead))

    def equations(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The field and its Jacobian, as `meanfield.numerics.continuation` takes them."""
        return self(q), self.jacobian(q)
