"""Order parameters of a limit under a linear prior: dq/dt = q (q.g - Lambda/2) - g, and nothing else enters.

A linear phi acts on the norm of the weights alone, which the multiplier restores. Source: theory.md, section 2.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np

from meanfield.errors import BlowUpError, InputError
from meanfield.ingredients.priors import PRIORS, PriorSettings, make_prior
from meanfield.mckean_vlasov.closures import coefficients_along
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.ode import Check, Rate, Solution, Tolerance, solve_in_stretches
from meanfield.results.solved import Solved
from meanfield.typing import FloatArray

Coefficients = Callable[[float, FloatArray], tuple[FloatArray, float]]
"""Function of t and q to g and Lambda."""

TOLERANCE = Tolerance(relative=1e-11, absolute=1e-13)
"""Tolerance of a step: covariances are built on these paths."""


def check_linear(prior: PriorSettings, others: str) -> None:
    """Refuse priors under which the overlaps do not close.

    Parameters
    ----------
    others : str
        Methods that take such priors, for the message.

    Raises
    ------
    InputError
        If phi is not linear.
    """
    if not prior.functions.linear:
        closing = ", ".join(name for name in PRIORS if make_prior(name).linear)
        raise InputError(
            f"prior.name = '{prior.name}': the order parameters close only under priors with linear phi "
            f"({closing}); use {others}, or change the prior"
        )


def rate(closure: Callable[[FloatArray], tuple[FloatArray, float]], q: FloatArray) -> FloatArray:
    """Velocity dq/dt = q (q.g - Lambda/2) - g of the overlaps, for linear phi.

    Parameters
    ----------
    closure : callable
        Function from q to g and Lambda.
    q : ndarray, shape (d1,)
        Overlaps.

    Returns
    -------
    ndarray, shape (d1,)
    """
    g, diffusion = closure(q)
    return np.asarray(q * (q @ g - 0.5 * diffusion) - g)


def order_parameters_of(limit: Limit) -> Solved:
    """Order parameters of a limit with a linear prior, as a method returns them.

    Parameters
    ----------
    limit : Limit

    Returns
    -------
    Solved
        Of the kind `order_parameters`: `time`, `q`, `g` and `Lambda`.
    """
    return as_order_parameters(limit, overlaps_along(limit))


def as_order_parameters(limit: Limit, solution: Solution) -> Solved:
    """Overlaps of a limit with the coefficients there, NaN at times that were not reached."""
    values = coefficients_along(limit, solution.values)
    arrays = {"time": solution.times, "q": solution.values, "g": values[:, :-1], "Lambda": values[:, -1]}
    return Solved("order_parameters", arrays, solution.status)


def overlaps_along(limit: Limit) -> Solution:
    """Overlaps at the output times and between them; no step goes past a corner of a schedule or the end of a phase."""
    return solve_in_stretches(
        stretches_along(limit, limit.times, _velocity),
        limit.initial_overlap,
        limit.times,
        TOLERANCE,
        check=outside_ball(limit),
        dense=True,
        label="order parameters",
        interruptible=True,
    )


def outside_ball(limit: Limit) -> Check:
    """Check of overlaps at a time, which returns an error where they are beyond the unit ball."""

    def blow_up(time: float, q: FloatArray) -> BlowUpError | None:
        finite = bool(np.all(np.isfinite(q)))
        if finite and q @ q <= 1.0 + 1e-6:  # the integration leaves the ball by its error
            return None
        what = f"|q| = {np.linalg.norm(q):.4g}" if finite else "q is not finite"
        return BlowUpError(time, f"{what}, but overlaps lie in the unit ball", limit.remedy_if_norm_drifts)

    return blow_up


def coefficients_between(limit: Limit, low: float, high: float) -> Coefficients:
    """Coefficients g and Lambda at t and q, from one corner of a schedule or end of a phase to the next."""
    phase = limit.phase_at(low)
    drive, factors = phase.drive, phase.drive.room

    def coefficients(t: float, q: FloatArray) -> tuple[FloatArray, float]:
        if not drive.moves:
            return phase.closure(q)
        drive.fill(t, low, high, factors)
        g, diffusion = phase.closure(q)
        return factors[0] * g, factors[1] * diffusion

    return coefficients


def _velocity(coefficients: Coefficients) -> Rate:
    """Velocity of overlaps with coefficients that change in time."""
    return lambda t, q: rate(partial(coefficients, t), q)


def stretches_along(
    limit: Limit, times: FloatArray, rate_of: Callable[[Coefficients], Rate]
) -> list[tuple[FloatArray, Rate]]:
    """Stretches between corners until the last of some times, with a rate of change made of g and Lambda in each.

    See `meanfield.numerics.ode.solve_in_stretches`.
    """
    corners = [corner for corner in limit.corners if corner < times[-1]]
    return [
        (
            np.unique([low, *times[(times >= low) & (times <= high)], high]),
            rate_of(coefficients_between(limit, low, high)),
        )
        for low, high in itertools.pairwise([0.0, *corners, float(times[-1])])
    ]
