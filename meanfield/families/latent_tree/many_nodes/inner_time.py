"""The time t of training from the time T in which nodes do not see each other, dT = o Delta dt."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from meanfield.errors import BlowUpError
from meanfield.families.latent_tree.many_nodes.latents import Latents
from meanfield.numerics.ode import Path, Tolerance, solve_ode
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

BLOW_UP_GROWTH = 1e9
"""Growth of Delta after which it is about to become infinite."""


def inner_times(nodes: Latents, times: FloatArray, tolerance: float, label: str) -> tuple[FloatArray, str]:
    """T at each output time, NaN where it was not reached, and the status; from t(T), an integral of 1/(o Delta).

    Parameters
    ----------
    nodes : Latents
    times : ndarray, shape (times,)
    tolerance : float
        Error of a step, relative to the time and to the last one.
    label : str
        Of the progress bar.
    """
    start, stop = nodes.Delta(0.0), float(times[-1])
    sign = np.copysign(1.0, start)
    with progress_bar(stop, label, "t") as bar:

        def rate(depth: float, t: FloatArray) -> FloatArray:
            bar.update(min(max(float(t[0]), bar.n), stop) - bar.n)
            return np.array([1.0 / (nodes.o * abs(nodes.Delta(sign * depth)))])

        solution = solve_ode(
            rate,
            np.zeros(1),
            np.array([0.0, 1e15]),  # a time T that is not reached
            Tolerance(tolerance, tolerance * stop),
            integrator="DOP853",
            stops=[
                lambda depth, t: stop - float(t[0]),
                lambda depth, t: BLOW_UP_GROWTH - abs(nodes.Delta(sign * depth) / start),
            ],
            dense=True,
            interruptible=True,
        )
    status, reached = solution.status, float(solution.end[0])
    if solution.stopped_by == 1:
        status = grown_at(reached).status
    found = np.full(len(times), np.nan)
    found[0] = 0.0
    if solution.stopped_by == 0:  # where the last output time is met, but for rounding
        found[-1] = sign * solution.end_time
    if solution.path is not None:
        for k in np.flatnonzero((times > 0.0) & (times < reached) & np.isnan(found)):
            found[k] = sign * _where(solution.path, float(times[k]), solution.end_time)
    return found, status


def _where(path: Path, time: float, end: float) -> float:
    """T at a time before the last, from t at all T."""
    return float(brentq(lambda depth: float(path(depth)[0]) - time, 0.0, end, xtol=1e-14 * end, rtol=1e-14))


def grown_at(time: float) -> BlowUpError:
    """The weights become infinite."""
    return BlowUpError(
        time,
        f"Delta has grown by {BLOW_UP_GROWTH:.0e} and becomes infinite at this time",
        "set network.initial.fixed_lengths to true, or time.stop to less",
    )
