"""Integration of the order parameters, with a progress bar, Ctrl-C, and a status that says how it ended.

Steps adapt in time by the method of Dormand and Prince of order 8, in compiled code: a step of an integrator in Python
takes longer than all rates of change that it evaluates for a small network. None goes past the end of a leg.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import DOP853

from meanfield.errors import BlowUpError
from meanfield.families.hidden_manifold.expectations.choice import QUADRATURE
from meanfield.families.hidden_manifold.order_parameters.legs import Leg, set_training
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import State, System, unpacked
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

_TABLE: Any = DOP853

STAGES = 12
"""Rates of change in a step, of which the last is not the first of the next."""

A, B, C = np.array(_TABLE.A), np.array(_TABLE.B), np.array(_TABLE.C)

E3, E5 = np.array(_TABLE.E3), np.array(_TABLE.E5)

A_MORE, C_MORE, D = np.array(_TABLE.A_EXTRA), np.array(_TABLE.C_EXTRA), np.array(_TABLE.D)
"""Coefficients of stages, of the step, of its two error estimates, and of the interpolant of order 7 within it; C are
times of stages."""

SAFETY, LEAST_FACTOR, MOST_FACTOR = 0.9, 0.2, 10.0
"""Factors between the length of one step and the next."""

GOES_ON, DONE, TOO_SHORT, NOT_FINITE = range(4)
"""How a march ends."""


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


def follow(legs: Sequence[Leg], start: FloatArray, times: FloatArray, tolerance: float, label: str = "") -> Path:
    """Order parameters along a path.

    Parameters
    ----------
    legs : sequence of Leg
        Equations in time.
    start : ndarray, shape (n,)
        State at the first time, as `packed` makes it.
    times : ndarray, shape (times,)
        Output times, increasing.
    tolerance : float
        Largest error of a step, relative and absolute.
    label : str
        Label of the progress bar.
    """
    legs = [leg for leg in legs if leg.start < times[-1] and leg.stop > times[0]]
    # The end of a leg that is no output goes where the next output will.
    values = np.full((len(times) + 1, len(start)), np.nan)
    errors = np.full(len(times) + 1, np.nan)
    y = start.copy()
    done = reached = 0
    ended = "complete"
    with progress_bar(float(times[-1] - times[0]), label or "order parameters", unit="t") as bar:
        try:
            for leg in legs:
                system = leg.system
                left = times[done:]
                outputs = left if leg is legs[-1] else np.append(left[left < leg.stop], leg.stop)
                steps = 1 if system.kind == QUADRATURE else 256  # between two updates of the progress bar
                clock, status, reached = np.array([max(leg.start, times[0]), 0.0]), GOES_ON, 0
                while status == GOES_ON:
                    reached, status = march(
                        system, leg.drive, clock, y, outputs, reached, values[done:], errors[done:],
                        tolerance, tolerance, steps,
                    )  # fmt: skip
                    bar.update(clock[0] - times[0] - bar.n)
                if status != DONE:
                    ended = _blow_up(system, clock[0], y, status).status
                    break
                done, reached = done + len(outputs) - (leg is not legs[-1]), 0
        except KeyboardInterrupt:
            ended = "interrupted"
    values[done + reached :], errors[done + reached :] = np.nan, np.nan
    return Path(unpacked(system, values[:-1]), errors[:-1], ended)


def _blow_up(system: System, time: float, y: FloatArray, status: int) -> BlowUpError:
    """Error that says why the integration could not go on."""
    Omega = np.abs(unpacked(system, y).Omega).max()
    what = "its rate of change is not finite" if status == NOT_FINITE else "no step is short enough"
    return BlowUpError(
        time,
        f"the student's weights have the squared length Omega = {Omega:.4g}, and {what}",
        "lower training.learning_rate or training.output_learning_rate",
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def march(system, drive, clock, y, times, reached, values, errors, relative, absolute, most_steps):  # type: ignore[no-untyped-def]
    """Advance a state by steps, and write its values at output times.

    Parameters
    ----------
    system : System
    drive : Drive
    clock : ndarray, shape (2,)
        Time and length of the next step, 0 if it is not known; both are updated.
    y : ndarray, shape (n,)
        State, which is updated.
    times : ndarray, shape (times,)
        Output times, and the end of the leg.
    reached : int
        Number of output times that have values.
    values, errors : ndarray, shape (times, n) and (times,)
        Where states and their generalisation errors go.
    relative, absolute : float
        Tolerance of a step.
    most_steps : int

    Returns
    -------
    reached, status : int
    """
    n, last = y.size, times[-1]
    k = np.zeros((STAGES + 4, n))
    F = np.empty((7, n))
    new = np.empty(n)
    trial = np.empty(n)
    waste = np.empty(n)
    numbers = np.empty(2 * system.training.size)
    start = clock[0]
    if drive.moves:
        call(set_training, drive, start, start, numbers, system)
    call(rates, y, system, k[0])
    if not _finite(k[0]):
        return reached, NOT_FINITE
    if clock[1] <= 0.0:
        clock[1] = call(_first_step, system, y, k[0], trial, k[1], relative, absolute)
    for _ in range(most_steps):
        h = min(clock[1], last - clock[0])
        if h <= 4e-16 * max(clock[0], 1e-300) or math.isnan(h):
            return reached, TOO_SHORT
        for stage in range(1, STAGES):
            _combine(y, h, k, A[stage], stage, trial)
            if drive.moves:
                call(set_training, drive, start, clock[0] + C[stage] * h, numbers, system)
            call(rates, trial, system, k[stage])
        _combine(y, h, k, B, B.size, new)
        if drive.moves:
            call(set_training, drive, start, clock[0] + h, numbers, system)
        call(rates, new, system, k[STAGES])
        size = _error(h, k, y, new, relative, absolute)
        if not size <= 1.0:
            if not _finite(new) and h < 1e-12 * max(1.0, clock[0]):
                return reached, NOT_FINITE
            clock[1] = h * (max(LEAST_FACTOR, SAFETY * size**-0.125) if size < 1e300 else LEAST_FACTOR)
            continue
        then = clock[0] + h if clock[0] + h < last and h < last - clock[0] else last
        if reached < times.size and times[reached] <= then:
            call(_interpolant, system, drive, start, clock[0], numbers, y, new, h, k, F, trial)
            while reached < times.size and times[reached] <= then:
                _evaluate(F, y, (times[reached] - clock[0]) / h, values[reached])
                errors[reached] = call(rates, values[reached], system, waste)
                reached += 1
        clock[0] = then
        clock[1] = h * min(MOST_FACTOR, SAFETY * size**-0.125 if size > 0.0 else MOST_FACTOR)
        for i in range(n):
            y[i], k[0, i] = new[i], k[STAGES, i]
        if clock[0] >= last:
            return reached, DONE
    return reached, GOES_ON


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _finite(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(x.size):
        total += 0.0 * x[i]
    return total == 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _combine(y, h, k, weight, stages, out):  # type: ignore[no-untyped-def]
    """Write y + h sum of weighted rates."""
    for i in range(y.size):
        out[i] = 0.0
    for stage in range(stages):
        w = weight[stage]
        if w != 0.0:
            for i in range(y.size):
                out[i] += w * k[stage, i]
    for i in range(y.size):
        out[i] = y[i] + h * out[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _first_step(system, y, rate, trial, other, relative, absolute):  # type: ignore[no-untyped-def]
    """Length of the first step, from the rate of change and its change along itself (Hairer, Norsett and Wanner)."""
    size, speed, change = 0.0, 0.0, 0.0
    for i in range(y.size):
        scale = absolute + relative * abs(y[i])
        size += (y[i] / scale) ** 2
        speed += (rate[i] / scale) ** 2
    size, speed = math.sqrt(size / y.size), math.sqrt(speed / y.size)
    h = 0.01 * size / speed if size > 1e-5 and speed > 1e-5 else 1e-6
    for i in range(y.size):
        trial[i] = y[i] + h * rate[i]
    call(rates, trial, system, other)
    for i in range(y.size):
        change += ((other[i] - rate[i]) / (absolute + relative * abs(y[i]))) ** 2
    change = math.sqrt(change / y.size) / h
    most = max(speed, change)
    return min(100.0 * h, (0.01 / most) ** 0.125 if most > 1e-15 else max(1e-6, h * 1e-3))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _error(h, k, y, new, relative, absolute):  # type: ignore[no-untyped-def]
    """Estimated error of a step in units of the tolerance."""
    fifth, third = 0.0, 0.0
    for i in range(y.size):
        five = three = 0.0
        for stage in range(STAGES + 1):
            five += E5[stage] * k[stage, i]
            three += E3[stage] * k[stage, i]
        scale = absolute + relative * max(abs(y[i]), abs(new[i]))
        fifth += (five / scale) ** 2
        third += (three / scale) ** 2
    both = fifth + 0.01 * third
    return abs(h) * fifth / math.sqrt(both * y.size) if both > 0.0 else 0.0 * both


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _interpolant(system, drive, start, time, numbers, y, new, h, k, F, trial):  # type: ignore[no-untyped-def]
    """Write the coefficients of the interpolant within a step."""
    for extra in range(3):
        stage = STAGES + 1 + extra
        _combine(y, h, k, A_MORE[extra], stage, trial)
        if drive.moves:
            call(set_training, drive, start, time + C_MORE[extra] * h, numbers, system)
        call(rates, trial, system, k[stage])
    for i in range(y.size):
        change = new[i] - y[i]
        F[0, i] = change
        F[1, i] = h * k[0, i] - change
        F[2, i] = 2.0 * change - h * (k[STAGES, i] + k[0, i])
        for row in range(4):
            F[3 + row, i] = 0.0
            for stage in range(STAGES + 4):
                F[3 + row, i] += h * D[row, stage] * k[stage, i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _evaluate(F, y, x, out):  # type: ignore[no-untyped-def]
    """Write the interpolant at a share x of the step."""
    for i in range(y.size):
        value = 0.0
        for row in range(7):
            value = (value + F[6 - row, i]) * (x if row % 2 == 0 else 1.0 - x)
        out[i] = y[i] + value
