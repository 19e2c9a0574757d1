"""What tests of runs in time share: schedules, SciPy's integrator from corner to corner, stopped steppers, verdicts."""

import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield
from meanfield.problems.problem_keys import with_value, with_values

THOUSANDTH = {"rtol": 1e-12, "atol": 1e-13}
"""Errors of steps that add up to a thousandth of the 1e-8 that is asked of equations in time."""


def table(times, values, stop, interpolation="linear"):
    """Table whose last value stays until the end of a run."""
    times, values = [np.asarray(given).tolist() for given in (times, values)]
    if interpolation == "linear":
        times, values = [*times, stop], [*values, values[-1]]
    return {"times": times, "values": values, "interpolation": interpolation}


def random_schedule(rng, largest):
    """Table or shape whose values are between 0 and `largest`, for a run until t = 6."""
    kind = rng.integers(4)
    if kind < 2:
        times = np.concatenate([[0.0], np.sort(rng.uniform(0.2, 5.5, rng.integers(1, 4)))])
        values = largest * rng.uniform(0.0, 1.0, len(times))
        return table(times, values, 6.0, ["linear", "step"][kind])
    if kind == 2:
        return {"schedule": "warmup_cosine", "peak": largest, "warmup": rng.uniform(0.3, 2.0), "duration": 5.0}
    return {"schedule": "exponential", "start": largest, "rate": rng.uniform(0.1, 1.0)}


def inside(t, low, high):
    """Time just inside of a stretch, so that a corner has the value of its own side."""
    return float(np.clip(t, low, np.nextafter(high, low)))


def integrated(velocity, start, times, corners, tolerances=THOUSANDTH):
    """Values at some times of dy/dt = velocity(t, y, low, high), by an integrator that begins anew at corners.

    Parameters
    ----------
    velocity : callable
        Takes the ends of the stretch, too.
    tolerances : dict
        Those of steps; the caller says why where they are others.
    """
    knots = np.unique([*times, *(corner for corner in corners if corner < times[-1])])
    found = [start]
    for ends in itertools.pairwise(knots):
        found.append(solve_ivp(velocity, ends, found[-1], "DOP853", args=ends, **tolerances).y[:, -1])
    return np.array(found)[np.isin(knots, times)]


def stopped(make, first, steps):
    """Stepper after some steps, the state of which another one has saved after the first of them."""
    before, after = make(), make()
    before.advance(0, first)
    after.restore(before.state)
    after.reached = before.reached
    after.advance(first, steps - first)
    return after


def lagging(problem, a):
    """Averages of weights from a fine path of the flow by the trapezoidal rule, in closed form between points."""
    fine = meanfield.solve(with_values(problem, {"time.outputs": 1501}), "population")
    path, t = fine["weights"].values, fine["time"].values
    average, found, left = path[0], [path[0]], np.exp(-a * t[1])
    for before, after in itertools.pairwise(path):
        average = left * average + 0.5 * (1.0 - left) * (before + after)
        found.append(average)
    return np.array(found)[np.rint(problem.time.outputs_at / t[1]).astype(int)]


def replicas_and_statistics(problem, names):
    """Results of SGD by replicas, and their statistics, whose means are those of the replicas."""
    runs, found = (
        meanfield.solve(with_value(problem, "particles.record", kind), "particles")
        for kind in ("replicas", "statistics")
    )
    for name in names:
        mean = runs[name].mean("replica").values
        assert found[f"{name}_mean"].values == pytest.approx(mean, abs=1e-14), name  # rounding
    return runs, found


def verdicts(problem, method, key, values):
    """Verdicts on SGD of its limit, and of limits for other values of a key, as if they were those of the problem."""
    sgd, right = meanfield.solve(problem, "particles"), meanfield.solve(problem, method)
    wrong = [meanfield.solve(with_value(problem, key, value), method) for value in values]
    # Only results of one problem are compared.
    limits = [right, *(each.assign_attrs(problem=right.attrs["problem"]) for each in wrong)]
    return [meanfield.compare(each, sgd).attrs["verdict"] for each in limits]
