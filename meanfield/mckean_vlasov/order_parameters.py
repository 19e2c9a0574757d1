"""Order parameters of a limit under a linear prior: dq/dt = q (q.g - Lambda/2) - g, and nothing else enters.

A linear phi acts on the norm of the weights alone, which the multiplier restores. Source: theory.md, section 2.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from meanfield.errors import BlowUpError, InputError
from meanfield.ingredients.priors import PRIORS, PriorSettings, make_prior
from meanfield.mckean_vlasov.closures import coefficients_along
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.ode import Rate, Solution, Tolerance, solve_in_stretches
from meanfield.results.solved import Solved
from meanfield.typing import FloatArray


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
    times = limit.times
    stretches = [
        (np.unique([low, *times[(times >= low) & (times <= high)], high]), _velocity(limit.phase_at(low), low, high))
        for low, high in itertools.pairwise([0.0, *limit.corners, float(times[-1])])
    ]

    def blow_up(time: float, q: FloatArray) -> BlowUpError | None:
        finite = bool(np.all(np.isfinite(q)))
        if finite and q @ q <= 1.0 + 1e-6:  # the integration leaves the ball by its error
            return None
        what = f"|q| = {np.linalg.norm(q):.4g}" if finite else "q is not finite"
        return BlowUpError(time, f"{what}, but overlaps lie in the unit ball", limit.remedy_if_norm_drifts)

    return solve_in_stretches(
        stretches,
        limit.initial_overlap,
        times,
        Tolerance(relative=1e-11, absolute=1e-13),  # covariances are built on these paths
        check=blow_up,
        dense=True,
        label="order parameters",
        interruptible=True,
    )


def _velocity(limit: Limit, low: float, high: float) -> Rate:
    """Velocity of overlaps from one corner of a schedule or end of a phase to the next."""
    drive, factors = limit.drive, limit.drive.room

    def driven(q: FloatArray) -> tuple[FloatArray, float]:
        g, diffusion = limit.closure(q)
        return factors[0] * g, factors[1] * diffusion

    def velocity(t: float, q: FloatArray) -> FloatArray:
        if not drive.moves:
            return rate(limit.closure, q)
        drive.fill(t, low, high, factors)
        return rate(driven, q)

    return velocity
