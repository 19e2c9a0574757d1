"""Ordinary differential equations: one driver around the integrators of SciPy.

The driver adds what every caller needs: values at given times, conditions that stop the integration, a check of the
values, a progress bar, and Ctrl-C that keeps what was computed. A caller says how accurate a step must be, and why.
Many paths at once, each with steps of its own, are followed by `meanfield.numerics.paths`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import DOP853, LSODA, RK45, DenseOutput, OdeSolution, OdeSolver
from scipy.optimize import brentq

from meanfield.errors import BlowUpError, InputError
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

Rate = Callable[[float, FloatArray], FloatArray]
"""The right-hand side: (t, y) -> dy/dt, both vectors of shape (n,)."""

Margin = Callable[[float, FloatArray], float]
"""A stop condition: the integration ends where this function of (t, y) changes its sign."""

Check = Callable[[float, FloatArray], BlowUpError | None]
"""Check of a value at an output time: its error ends the integration; the value is NaN where an integrator gave up."""

Path = Callable[[float], FloatArray]
"""The solution as a function of time."""

Integrator = Literal["LSODA", "RK45", "DOP853"]
"""Name of an integrator: LSODA for stiff problems, RK45 for plotted curves, DOP853 for high accuracy."""

_INTEGRATORS: dict[Integrator, Callable[..., OdeSolver[Any]]] = {"LSODA": LSODA, "RK45": RK45, "DOP853": DOP853}

STOP_TIME_TOLERANCE = 4.0 * float(np.finfo(float).eps)
"""Accuracy of the time at which a stop condition is met, relative and absolute."""


@dataclass(frozen=True)
class Tolerance:
    """Largest error that an integrator may make in one step, `absolute + relative |y|` for each component.

    Parameters
    ----------
    relative, absolute : float
        Relative and absolute part, not negative, and not both 0.

    Raises
    ------
    InputError
        If one is negative, or both are 0.
    """

    relative: float
    absolute: float

    def __post_init__(self) -> None:
        if not (self.relative >= 0.0 and self.absolute >= 0.0 and self.relative + self.absolute > 0.0):
            raise InputError(
                f"tolerance = ({self.relative}, {self.absolute}): give a relative and an absolute tolerance that are "
                "not negative, and not both 0"
            )


@dataclass(frozen=True)
class Solution:
    """A solution of an ordinary differential equation.

    Parameters
    ----------
    times : ndarray, shape (times,)
        Output times, or ends of the steps.
    values : ndarray, shape (times, n)
        y at these times; NaN at output times that were not reached.
    end : ndarray, shape (n,)
        Time and y at which the integration ended.
    status : str
        `complete`, also where a stop condition was met; `interrupted`; or `failed: ...` with time, fault and remedy.
    stopped_by : int or None
        Index of the stop condition that was met.
    path : callable or None
        y at any time between the start and `end_time`, where it was asked for and a step was taken.
    """

    times: FloatArray
    values: FloatArray
    end_time: float
    end: FloatArray
    status: str
    stopped_by: int | None
    path: Path | None


def solve_ode(
    rate: Rate,
    start: ArrayLike,
    times: ArrayLike,
    tolerance: Tolerance,
    *,
    integrator: Integrator = "LSODA",
    stops: Sequence[Margin] = (),
    check: Check | None = None,
    longest_step: float = np.inf,
    every_step: bool = False,
    dense: bool = False,
    label: str = "",
    interruptible: bool = False,
) -> Solution:
    """Solve dy/dt = rate(t, y) from a start.

    Parameters
    ----------
    rate : callable
        (t, y) -> dy/dt.
    start : array_like, shape (n,)
        y at the first time.
    times : array_like, shape (times,)
        Output times, increasing; the first is that of the start and the last ends the integration.
    tolerance : Tolerance
        Tolerance of a step.
    integrator : {"LSODA", "RK45", "DOP853"}
    stops : sequence of callable
        Stop conditions (t, y) -> margin; the first that is 0, or changes its sign, ends the integration there.
    check : callable, optional
        (t, y) -> error of a value, or None; called at output times.
    longest_step : float
    every_step : bool
        Whether to return y at every step instead of at output times; a stop condition that was met is the last one.
    dense : bool
        Whether to keep the solution at all times.
    label : str
        Label of the progress bar; without a label there is no bar.
    interruptible : bool
        Whether Ctrl-C ends the integration with what was computed, instead of raising KeyboardInterrupt.

    Raises
    ------
    InputError
        If the start is not finite, or the times are not finite and increasing.

    Notes
    -----
    Overflows of `rate` make no warnings: a value that is not finite ends the integration, and the status says so.
    """
    y, at = np.array(start, dtype=float), np.array(times, dtype=float)
    _check_input(y, at)
    with np.errstate(all="ignore"), _bar(at, label) as bar:
        run = _Run(rate, y, at, tolerance, integrator, stops, check, longest_step, dense)
        try:
            while not run.status:
                run.step()
                if bar is not None:
                    bar.update(run.steps[-1][0] - at[0] - bar.n)
        except KeyboardInterrupt:
            if not interruptible:
                raise
            run.status = "interrupted"
    return run.solution(every_step)


def solve_in_stretches(
    stretches: Sequence[tuple[FloatArray, Rate]],
    start: ArrayLike,
    times: ArrayLike,
    tolerance: Tolerance,
    **options: Any,
) -> Solution:
    """Solve dy/dt = rate(t, y) whose rate jumps or bends at some times, at which the integrator begins anew.

    Parameters
    ----------
    stretches : sequence of (ndarray, callable)
        Times of a stretch, the first and the last of which are its ends and the others output times, and its rate.
    start, times, tolerance, **options
        See `solve_ode`.
    """
    if len(stretches) == 1:
        return solve_ode(stretches[0][1], start, times, tolerance, **options)
    at = np.array(times, dtype=float)
    values, y = np.full((len(at), np.size(start)), np.nan), start
    paths: list[Path] = []
    for inside, rate in stretches:
        found = solve_ode(rate, y, inside, tolerance, **options)
        row = np.searchsorted(inside, at).clip(max=len(inside) - 1)
        here = inside[row] == at
        values[here] = found.values[row[here]]
        y = found.end
        if found.path is not None:
            paths.append(found.path)
        if found.status != "complete":
            break
    return replace(found, times=at, values=values, path=_joined(paths, [inside[-1] for inside, _ in stretches]))


def first_times(times: FloatArray, values: FloatArray, levels: FloatArray) -> FloatArray:
    """Times at which positive values first reach levels, by their logarithms, which are smooth; NaN if they do not.

    Parameters
    ----------
    times : ndarray, shape (times,)
    values : ndarray, shape (times, n)
        NaN where they are not known.
    levels : ndarray, shape (n,)
    """
    found = np.full(len(levels), np.nan)
    for i, level in enumerate(levels):
        there = np.isfinite(values[:, i]) & (values[:, i] > 0.0)
        if not there.any():
            continue
        steps = np.arange(there.sum())
        # 50 times between two outputs are enough to interpolate them.
        fine = np.interp(np.arange(50 * (len(steps) - 1) + 1) / 50, steps, times[there])
        reached = np.interp(fine, times[there], np.log(values[there, i])) >= np.log(level)
        if reached.any():
            found[i] = fine[np.argmax(reached)]
    return found


def _joined(paths: list[Path], ends: list[float]) -> Path | None:
    """Path from those of stretches and the ends of these, of which the last ones may not have been reached."""
    if not paths:
        return None
    corners = np.array(ends[: len(paths) - 1])
    return lambda t: paths[int(np.searchsorted(corners, t, side="right"))](t)


def _check_input(start: FloatArray, times: FloatArray) -> None:
    if start.ndim != 1 or not np.all(np.isfinite(start)):
        raise InputError(f"start = {start.tolist()}: give a vector of finite numbers")
    if times.ndim != 1 or len(times) < 2 or not (np.all(np.isfinite(times)) and np.all(np.diff(times) > 0.0)):
        raise InputError(f"times = {times.tolist()}: give at least two finite times, each later than the one before")


def _bar(times: FloatArray, label: str) -> AbstractContextManager[Any]:
    return progress_bar(float(times[-1] - times[0]), label, unit="t") if label else nullcontext()


class _Run:
    """Integration under way: the arguments of `solve_ode`, and the values computed so far."""

    def __init__(
        self,
        rate: Rate,
        start: FloatArray,
        times: FloatArray,
        tolerance: Tolerance,
        integrator: Integrator,
        stops: Sequence[Margin],
        check: Check | None,
        longest_step: float,
        dense: bool,
    ) -> None:
        self.steps = [(float(times[0]), start)]
        self.status = ""
        self._times, self._values = times, np.full((len(times), len(start)), np.nan)
        self._reached = 0
        self._stops, self._check, self._dense = stops, check, dense
        self._stopped_by: int | None = None
        self._pieces: list[DenseOutput[Any]] = []
        self._signs = [float(np.sign(stop(float(times[0]), start))) for stop in stops]
        self._put(start)
        # An integrator may go on for ever, or with NaN, from a rate that is not finite.
        if not self.status and not np.all(np.isfinite(rate(float(times[0]), start))):
            self._fail("its rate of change is not finite")
        if not self.status:
            self._solver = _INTEGRATORS[integrator](
                rate,
                float(times[0]),
                start,
                float(times[-1]),
                max_step=longest_step,
                rtol=tolerance.relative,
                atol=tolerance.absolute,
            )

    def step(self) -> None:
        """Take a step, unless it fails, and evaluate stop conditions and outputs within it."""
        message = self._solver.step()
        t, y = float(self._solver.t), np.asarray(self._solver.y)
        if self._solver.status == "failed" or not np.all(np.isfinite(y)):
            self._fail(message or "after it it is not finite")
            return
        if t <= self.steps[-1][0]:  # LSODA would go on for ever
            self._fail("the next step is too short to change the time")
            return
        met = [i for i, stop in enumerate(self._stops) if self._signs[i] * stop(t, y) <= 0.0]
        if met or self._dense or t >= self._times[self._reached]:
            piece = self._solver.dense_output()
            if met:
                t, self._stopped_by = min((self._crossing(i, piece), i) for i in met)
                y = np.asarray(piece(t))
            self._pieces += [piece] * self._dense
            self._outputs(piece, t)
        self.steps.append((t, y))
        if not self.status and (met or self._solver.status == "finished"):
            self.status = "complete"

    def _crossing(self, i: int, piece: DenseOutput[Any]) -> float:
        """Time within the last step at which a margin is 0."""

        def ahead(t: float) -> float:
            return self._signs[i] * self._stops[i](t, np.asarray(piece(t)))

        first, last = float(piece.t_old), float(piece.t)
        if ahead(first) <= 0.0:  # 0 from the start, or by rounding
            return first
        if ahead(last) >= 0.0:  # by rounding
            return last
        return float(brentq(ahead, first, last, xtol=STOP_TIME_TOLERANCE, rtol=STOP_TIME_TOLERANCE))

    def _outputs(self, piece: DenseOutput[Any], until: float) -> None:
        """Store the outputs up to a time."""
        while not self.status and self._reached < len(self._times) and self._times[self._reached] <= until:
            self._put(np.asarray(piece(self._times[self._reached])))

    def _put(self, value: FloatArray) -> None:
        fault = self._check(float(self._times[self._reached]), value) if self._check else None
        if fault is not None:
            self.status = fault.status
            return
        self._values[self._reached] = value
        self._reached += 1

    def _fail(self, why: str) -> None:
        """End the integration at the last step, with the message of the check for the next output time."""
        t, y = self.steps[-1]
        following = float(self._times[self._reached])
        fault = self._check(following, np.full(len(y), np.nan)) if self._check else None
        values = np.array2string(y, precision=4, threshold=8)
        remedy = "raise the tolerance, or stop earlier"
        self.status = (fault or BlowUpError(t, f"the solution is {values}, and {why}", remedy)).status

    def solution(self, every_step: bool) -> Solution:
        """Solution up to the last step."""
        end_time, end = self.steps[-1]
        times, values = self._times, self._values
        if every_step:
            times, values = np.array([t for t, _ in self.steps]), np.array([y for _, y in self.steps])
        nodes = [t for t, _ in self.steps[: len(self._pieces) + 1]]
        path = OdeSolution(nodes, self._pieces) if self._pieces else None
        return Solution(times, values, end_time, end, self.status, self._stopped_by, path)
