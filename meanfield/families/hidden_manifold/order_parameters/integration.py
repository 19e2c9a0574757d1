"""Integration of the order parameters, with a progress bar, Ctrl-C, and a status that says how it ended."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.families.hidden_manifold.expectations.choice import QUADRATURE
from meanfield.families.hidden_manifold.order_parameters.marching import GOES_ON, NOT_FINITE, march
from meanfield.families.hidden_manifold.order_parameters.system import State, System, unpacked
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

MANY_STEPS, FEW_STEPS = 256, 1
"""Steps between two updates of the progress bar: of expectations in closed form, and by quadrature."""


class Path(NamedTuple):
    """Order parameters at output times, NaN at those that were not reached.

    Parameters
    ----------
    state : State
        With a leading dim of the output times.
    errors : ndarray, shape (times,)
        Generalisation error.
    status : str
        `complete`, `interrupted` or `failed: ...`.
    """

    state: State
    errors: FloatArray
    status: str


def follow(system: System, start: FloatArray, times: FloatArray, tolerance: float, label: str = "") -> Path:
    """Order parameters along a path.

    Parameters
    ----------
    system : System
    start : ndarray, shape (n,)
        State at the first time, as `packed` makes it.
    times : ndarray, shape (times,)
        Output times, increasing.
    tolerance : float
        Largest error of a step, relative and absolute.
    label : str
        Label of the progress bar.
    """
    values, errors = np.full((len(times), len(start)), np.nan), np.full(len(times), np.nan)
    clock, y, reached, status = np.array([times[0], 0.0]), start.copy(), 0, GOES_ON
    steps = FEW_STEPS if system.kind == QUADRATURE else MANY_STEPS
    ended = "complete"
    with progress_bar(float(times[-1] - times[0]), label or "order parameters", unit="t") as bar:
        try:
            while status == GOES_ON:
                reached, status = march(system, clock, y, times, reached, values, errors, tolerance, tolerance, steps)
                bar.update(clock[0] - times[0] - bar.n)
        except KeyboardInterrupt:
            ended = "interrupted"
    if reached < len(times) and ended == "complete":
        ended = _blow_up(system, clock[0], y, status).status
    values[reached:], errors[reached:] = np.nan, np.nan
    return Path(unpacked(system, values), errors, ended)


def _blow_up(system: System, time: float, y: FloatArray, status: int) -> BlowUpError:
    """What happened where the integration could not go on."""
    Omega = np.abs(unpacked(system, y).Omega).max()
    what = "its rate of change is not finite" if status == NOT_FINITE else "no step is short enough"
    return BlowUpError(
        time,
        f"the student's weights have the squared length Omega = {Omega:.4g}, and {what}",
        "lower training.learning_rate or training.output_learning_rate",
    )
