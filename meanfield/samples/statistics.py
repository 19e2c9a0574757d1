"""Statistics of samples of many coordinates that tell independent Gaussian ones from others.

Directions are found in one half of the samples and judged in the other, or chance would look like structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.sparse.linalg import svds
from scipy.stats import kurtosistest

from meanfield.arguments import as_array
from meanfield.errors import InputError
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

FEWEST_SAMPLES, FEWEST_COORDINATES = 100, 10
"""Sizes of an array below which standard errors are no guide."""

CHANCE_ERRORS = 5.0
"""Standard errors beyond which a number is no chance. Estimates of fourth moments have long tails: of 1000 arrays of
Gaussian samples at most a few are taken for something else."""

DIRECTIONS = 64
"""Number of random directions whose kurtosis is averaged: they stand for the weights of a student."""


@dataclass(frozen=True)
class Statistics:
    """Numbers of an array of samples, each with the error that independent samples make.

    Parameters
    ----------
    samples, coordinates : int
        Shape of the array.
    variance : float
        Mean variance of a coordinate; all lengths below are in units of its root.
    mean_share : float
        |mean|^2/D, without what chance adds.
    radius_spread, radius_error : float
        Variance of |x - mean|^2/D from sample to sample beyond that which the covariance and the fourth moments of
        single coordinates make, and its standard error.
    anisotropy, anisotropy_error : float
        Variance over directions of the variance along them, relative to its squared mean, and its standard error.
    leading_share : float
        Variance along the leading direction beyond that of the others, as a share of that of all.
    leading_kurtosis, field_kurtosis, clipped_kurtosis, coordinate_kurtosis : float
        Kurtosis along the leading direction, and its mean along random directions, along these of clipped samples, and
        along coordinates.
    leading_score : float
        Kurtosis along the leading direction in standard errors from that of a Gaussian, as a normal variable
        (Anscombe and Glynn).
    field_error, coordinate_error : float
        Standard errors of the others for Gaussian samples.
    """

    samples: int
    coordinates: int
    variance: float
    mean_share: float
    radius_spread: float
    radius_error: float
    anisotropy: float
    anisotropy_error: float
    leading_share: float
    leading_kurtosis: float
    field_kurtosis: float
    clipped_kurtosis: float
    coordinate_kurtosis: float
    leading_score: float
    field_error: float
    coordinate_error: float

    @property
    def has_common_radius(self) -> bool:
        """Whether |x|^2/D differs between samples by more than chance, or random fields have other tails."""
        return self.radius_spread > CHANCE_ERRORS * self.radius_error or self.has_other_tails

    @property
    def has_other_tails(self) -> bool:
        """Whether the kurtosis of random fields is not that of Gaussians, beyond chance and large single entries."""
        least = min(abs(self.field_kurtosis - 3.0), abs(self.clipped_kurtosis - 3.0))
        return least > CHANCE_ERRORS * float(np.sqrt(24.0 / self.samples))

    @property
    def leading_chance(self) -> float:
        """Largest variance along the leading direction, beyond that of the others, that chance explains."""
        tails = max(self.leading_kurtosis, 3.0) - 1.0  # a direction along few entries with heavy tails scatters more
        return CHANCE_ERRORS * float(np.sqrt(2.0 * tails / self.samples))

    @property
    def leading_tails(self) -> float:
        """Relative change of the kurtosis along the leading direction, by the part of its variance beyond others."""
        beyond = self.leading_share * self.coordinates
        return abs(self.leading_kurtosis / 3.0 - 1.0) * beyond / (1.0 + beyond)


def checked_samples(samples: Any, name: str = "samples") -> FloatArray:
    """Array of samples, refused where it is too small or holds what is no number.

    Raises
    ------
    InputError
    """
    try:
        X = np.asarray(samples, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} hold what is no number; give an array of shape (samples, coordinates)") from error
    if X.ndim != 2 or len(X) < FEWEST_SAMPLES or X.shape[1] < FEWEST_COORDINATES:
        raise InputError(
            f"{name} have the shape {X.shape}; give at least {FEWEST_SAMPLES} rows of at least {FEWEST_COORDINATES} "
            "coordinates"
        )
    if not np.isfinite(X).all():
        raise InputError(f"{name}[{np.argwhere(~np.isfinite(X))[0].tolist()}] is not finite; remove such rows")
    return X


def checked_vectors(given: Any, name: str, N: int) -> FloatArray:
    """Vectors as the columns of an array of N rows, refused where they are none.

    Raises
    ------
    InputError
    """
    wanted = f"give {N} finite rows, and for each vector a column that is not 0"
    array = as_array(given, name, wanted)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or len(array) != N or not np.isfinite(array).all() or not (array**2).sum(axis=0).all():
        raise InputError(f"{name}: has the shape {array.shape}; {wanted}")
    return array


def statistics_of(X: FloatArray, rng: Generator) -> tuple[Statistics, FloatArray]:
    """Statistics of samples, and the samples in other order without their mean, in units of their deviation.

    Parameters
    ----------
    X : ndarray, shape (samples, coordinates)
        See `checked_samples`.
    rng : Generator
        Of the random directions and halves.

    Raises
    ------
    InputError
        If samples do not vary.
    """
    X = X[rng.permutation(len(X))]
    n, D = X.shape
    centre = X.mean(axis=0)
    away = X - centre
    variance = float((away**2).sum() / (n - 1) / D)
    if not variance > 0.0:
        raise InputError("samples do not vary; give rows that differ")
    away /= np.sqrt(variance)
    first, second = np.array_split(away, 2)
    with progress_bar(4, "samples", "statistic") as bar:
        square, square_error = _covariance(first, second)
        bar.update()
        radius, radius_error = _radius(away, square)
        bar.update()
        along = second @ _leading(first, rng.standard_normal(min(first.shape)))
        bar.update()
        coordinate_kurtosis = float(kurtosis(away[:, away.any(axis=0)]).mean())
        bar.update()
    directions = rng.standard_normal((D, DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    found = Statistics(
        samples=n,
        coordinates=D,
        variance=variance,
        mean_share=float(centre @ centre / variance / D - 1.0 / n),
        radius_spread=radius,
        radius_error=radius_error,
        anisotropy=square - 1.0,
        anisotropy_error=square_error,
        leading_share=float(max(along.var(ddof=1) - 1.0, 0.0) / D),
        leading_kurtosis=float(kurtosis(along[:, None])[0]),
        field_kurtosis=float(kurtosis(away @ directions).mean()),
        clipped_kurtosis=float(kurtosis(clipped(away) @ directions).mean()),
        coordinate_kurtosis=coordinate_kurtosis,
        leading_score=float(kurtosistest(along).statistic),
        field_error=float(np.sqrt(24.0 / n / min(DIRECTIONS, D))),
        coordinate_error=float(np.sqrt(24.0 / n / D)),
    )
    return found, away


def _covariance(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """D tr(Cov^2)/tr(Cov)^2 without bias, and its standard error for Gaussian samples of equal variances.

    The trace of the product of the covariances of two halves has no bias: they are independent.
    """
    n, D = len(first) + len(second), first.shape[1]
    if len(first) < D:
        total = float(((first @ second.T) ** 2).sum())
    else:
        total = float(((first.T @ first) * (second.T @ second)).sum())
    return total / len(first) / len(second) / D, float(np.sqrt(8.0 + 24.0 / D)) / n


def _leading(half: FloatArray, start: FloatArray) -> FloatArray:
    """Direction of the largest variance, to the accuracy that a judgement on other samples needs."""
    _, _, directions = svds(half, k=1, v0=start, tol=1e-3)  # other errors of the direction, of chance, are larger
    return np.asarray(directions[0])


def _radius(away: FloatArray, square: float) -> tuple[float, float]:
    """Variance of |x|^2/D beyond that which covariances and single coordinates make, and its standard error.

    A Gaussian has 2 tr(Cov^2)/tr(Cov)^2, and independent coordinates add what their fourth moments differ by.
    """
    radius = (away**2).mean(axis=1)
    apart = radius - radius.mean()
    variance = float((apart**2).sum() / (len(away) - 1))
    error = np.sqrt(max(float((apart**4).mean()) - variance**2, 0.0) / len(away))
    own = float(((away**4).mean(axis=0) - 3.0 * (away**2).mean(axis=0) ** 2).sum()) / away.shape[1] ** 2
    return variance - 2.0 * square / away.shape[1] - own, float(error)


def clipped(x: FloatArray) -> FloatArray:
    """Samples without large entries: five deviations of Gaussian ones are left."""
    bound = 7.4 * float(np.median(np.abs(x))) or np.inf
    return x.clip(-bound, bound)


def kurtosis(fields: FloatArray) -> FloatArray:
    """Kurtosis of columns, 3 on average for Gaussian samples."""
    apart, n = fields - fields.mean(axis=0), len(fields)
    ratio = (apart**4).mean(axis=0) / np.maximum((apart**2).mean(axis=0) ** 2, np.finfo(float).tiny)
    return np.asarray((n + 1) / (n - 1) * ratio)
