"""Gaussian likelihood of what runs show at all times, with what a limit says of it and of its covariance."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import chi2

from meanfield.comparison.sides import finished_runs
from meanfield.errors import InputError
from meanfield.numerics.linear_noise import NoiseInTime
from meanfield.problems.base import Problem
from meanfield.problems.known_families import family_of
from meanfield.results.result import Result, check_dataset
from meanfield.typing import FloatArray, IntArray

if TYPE_CHECKING:
    import xarray as xr

LARGEST = 4000
"""Largest number of values that one run shows, of which a matrix is factorised."""

ROUNDING = 1e-10
"""Share of each variance that is added to it, for the errors of the covariance."""


class Data(NamedTuple):
    """What runs show.

    Parameters
    ----------
    runs : xarray.Dataset
    N : float
        Steps per unit of time.
    places : ndarray of int
        Output times of the problem at which they are.
    """

    runs: xr.Dataset
    N: float
    places: IntArray

    @classmethod
    def of(cls, problem: Problem, runs: xr.Dataset) -> Data:
        """Runs at output times of a problem, from the start on; refused where they are none."""
        check_dataset(runs)
        result = Result.of(runs)
        if family_of(result.problem) is not family_of(problem):
            raise InputError("fit: the runs are of another family than the problem; give a problem of theirs")
        if "replica" not in runs.dims or "time" not in runs.dims:
            raise InputError(
                f"fit: a result of the kind '{result.method}' holds no single runs in time; give what "
                "meanfield.simulate_sgd returns with particles.record = 'replicas', or meanfield.runs"
            )
        held = finished_runs(result).dataset
        places = problem.time.output_of(held["time"].values)  # type: ignore[attr-defined]
        if (places < 0).any():
            other = float(held["time"].values[places < 0][0])
            raise InputError(
                f"fit: the runs have t = {other:g}, which is no output time of the problem; set time to theirs"
            )
        if places[0] != 0:
            raise InputError("fit: the runs begin after t = 0, and what they show at the start is needed; give it, too")
        return cls(held, result.steps_per_time, places)


class Likelihood(NamedTuple):
    """Likelihood of runs with some values of the keys.

    Parameters
    ----------
    mean : ndarray, shape (values,)
        What the limit says of what runs show after the start, with that of their mean start.
    covariance, root : ndarray, shape (values, values)
        N times its covariance, and the lower factor of that.
    away : ndarray, shape (runs, values)
        What runs show besides, each with its own start.
    N : float
    start : ndarray
        State at the start, by the problem.
    """

    mean: FloatArray
    covariance: FloatArray
    root: FloatArray
    away: FloatArray
    N: float
    start: FloatArray

    @classmethod
    def of(cls, data: Data, limit: NoiseInTime) -> Likelihood:
        """Likelihood of runs by a limit; of what does not scatter nothing is said."""
        shown, places = limit.of_runs(data.runs), data.places
        if not np.isfinite(shown).all():
            raise InputError("fit: there are runs that blew up, whose values are not finite; leave them out")
        start = (shown[:, 0] - limit.mean[0]) @ limit.by_start[places].swapaxes(1, 2)  # (times, runs, size)
        expected = limit.mean[places] + start.swapaxes(0, 1)
        covariance = limit.covariance[places][:, :, places]
        count = covariance.shape[0] * covariance.shape[1]
        variance = np.einsum("kaka->ka", covariance).ravel()
        moving = variance > 1e-9 * variance.max()  # lengths that constraints hold, and the start, do not scatter
        if not 0 < moving.sum() <= LARGEST:
            raise InputError(
                f"fit: each run shows {moving.sum()} values that scatter; at most {LARGEST} are taken: thin them "
                "out by runs.isel(time=slice(None, None, 2))"
            )
        whole = covariance.reshape(count, count)[np.ix_(moving, moving)]
        root = np.asarray(np.linalg.cholesky(whole + ROUNDING * np.diag(np.diag(whole))), dtype=float)
        away = (shown - expected).reshape(len(shown), -1)[:, moving]
        return cls(expected.mean(axis=0).ravel()[moving], whole, root, away, data.N, limit.mean[0])

    @property
    def white(self) -> FloatArray:
        """What runs show besides the limit in independent numbers of variance 1, shape (values, runs)."""
        return np.asarray(np.sqrt(self.N) * self.whitened(self.away.T))

    def whitened(self, columns: FloatArray) -> FloatArray:
        """Columns in units in which C is 1."""
        return np.asarray(solve_triangular(self.root, columns, lower=True))

    @property
    def value(self) -> float:
        """Logarithm of the likelihood, up to a constant."""
        return float(-0.5 * np.sum(self.white**2) - len(self.away) * np.log(np.diag(self.root)).sum())

    def judged(self, estimated: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Squares of means and of scatter, degrees of freedom, and shares of true limits with such ones."""
        white, runs = self.white, len(self.away)
        mean = white.mean(axis=1)
        squares, degrees = [runs * mean @ mean], [max(len(mean) - estimated, 1)]
        chance = [chi2.sf(squares[0], degrees[0])]
        if runs > 1:
            squares.append(np.sum((white - mean[:, None]) ** 2))
            degrees.append((runs - 1) * len(mean))
            chance.append(2.0 * min(chi2.cdf(squares[1], degrees[1]), chi2.sf(squares[1], degrees[1])))
        return np.array(squares), np.array(degrees, dtype=float), np.array(chance)
