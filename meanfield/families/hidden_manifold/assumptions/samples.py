"""Which assumption of the conventional theory fails on a person's own data: an array of latents or of inputs.

Every number is an estimate from samples, held against its standard error or against what Gaussian samples show.
Directions are found in one half of the samples and judged in the other, or chance would look like structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import svds
from scipy.stats import kurtosistest

from meanfield.arguments import as_array, as_whole
from meanfield.errors import InputError
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

FEWEST_SAMPLES, FEWEST_COORDINATES = 100, 10
"""Sizes of an array below which standard errors are no guide."""

CHANCE_ERRORS = 5.0
"""Standard errors beyond which a number is no chance. Estimates of fourth moments have long tails: of 1000 arrays of
Gaussian samples at most a few are taken for something else."""

LONG_SHARE = 0.05
"""Share of |C|^2 in one direction, or in the mean, from which it counts as of order D. One step of SGD moves the
student's overlap with the direction by the learning rate times this share."""

ERROR_PER_VARIANCE = 0.1
"""Largest error of R until t = 20 under the conventional theory, by relative variance of |C|^2/D: 0.0045 for 0.043,
0.022 for 0.2, 0.095 for 0.71, by the method assumptions on two scales with the teacher and student of the example."""

DIRECTIONS = 64
"""Number of random directions whose kurtosis is averaged: they stand for the weights of a student."""


@dataclass(frozen=True)
class SampleReport:
    """Law of samples beside that which the conventional theory assumes.

    Parameters
    ----------
    kind : str
        `latents` or `inputs`.
    samples, coordinates : int
        Shape of the array.
    variance : float
        Mean variance of a coordinate; all lengths below are in units of its root.
    mean_share : float
        |mean|^2/D, without what chance adds.
    radius_spread, radius_error : float
        Variance of |C - mean|^2/D from sample to sample beyond that which the covariance and the fourth moments of
        single coordinates make, and its standard error.
    anisotropy, anisotropy_error : float
        Variance over directions of the variance along them, relative to its squared mean, and its standard error.
    leading_share : float
        Variance along the leading direction beyond that of the others, as a share of that of all.
    leading_kurtosis, field_kurtosis, coordinate_kurtosis : float
        Kurtosis along the leading direction, and its mean along random directions and along coordinates.
    leading_score : float
        Kurtosis along the leading direction in standard errors from that of a Gaussian, as a normal variable
        (Anscombe and Glynn).
    field_error, coordinate_error : float
        Standard errors of the others for Gaussian samples.
    teacher_kurtosis : ndarray, shape (teachers,)
        Kurtosis of the teacher's fields, if a teacher was given.
    """

    kind: str
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
    coordinate_kurtosis: float
    leading_score: float
    field_error: float
    coordinate_error: float
    teacher_kurtosis: FloatArray

    @property
    def regimes(self) -> tuple[str, ...]:
        """Regimes of hidden_manifold.md that the samples show, the gravest first; ("Gaussian",) if none.

        What is beyond chance and too small to matter is none; `str` says its size.
        """
        # The conventional theory is then off by `ERROR_PER_VARIANCE` times that, 0.01, or more.
        mixture = max(self._mixtures.values(), default=0.0) > 0.1
        # Whitening matters from an anisotropy of 0.01.
        uneven = self.kind == "latents" and self.anisotropy > max(CHANCE_ERRORS * self.anisotropy_error, 0.01)
        coordinates = abs(self.coordinate_kurtosis - 3.0) > CHANCE_ERRORS * self.coordinate_error
        found = [name for name, there in (("III", bool(self._long)), ("II", mixture), ("IV", uneven)) if there]
        return tuple(found) or (("I",) if coordinates else ("Gaussian",))

    @property
    def _long(self) -> list[str]:
        """Parts of |C|^2/D of order 1, in words."""
        chance = CHANCE_ERRORS * np.sqrt(4.0 / self.samples) / self.coordinates
        found = []
        if self.mean_share > LONG_SHARE:
            found.append(f"the mean has the share {self.mean_share:.3g} of |C|^2/D")
        if self.leading_share > LONG_SHARE + chance:
            found.append(f"the leading direction has the share {self.leading_share:.3g} of the variance")
        return found

    @property
    def _mixtures(self) -> dict[str, float]:
        """Signs of a mixture beyond chance, in words, and their sizes, such as the relative variance of |C|^2/D.

        A leading direction counts by the part of its variance that is more than that of others.
        """
        found = {}
        if self.radius_spread > CHANCE_ERRORS * self.radius_error:
            words = f"|C|^2/D has a standard deviation of {self.radius_spread**0.5:.3g} beyond chance"
            found[words] = self.radius_spread
        if abs(self.field_kurtosis - 3.0) > CHANCE_ERRORS * np.sqrt(24.0 / self.samples):
            words = f"the kurtosis of random fields is {self.field_kurtosis:.3g} (3 if Gaussian)"
            found[words] = abs(self.field_kurtosis / 3.0 - 1.0)
        if abs(self.leading_score) > CHANCE_ERRORS:
            beyond = self.leading_share * self.coordinates
            words = f"the kurtosis along the leading direction is {self.leading_kurtosis:.3g} (3 if Gaussian)"
            found[words] = abs(self.leading_kurtosis / 3.0 - 1.0) * beyond / (1.0 + beyond)
        return found

    def __str__(self) -> str:
        """Regimes with their reasons, and what follows, in words."""
        return "\n".join([self._head(), *(f"  {name}: {self._reason(name)}" for name in self.regimes), *self._more()])

    def _head(self) -> str:
        return f"{self.samples:,} {self.kind} of {self.coordinates:,} coordinates, of the variance {self.variance:.4g}"

    def _reason(self, regime: str) -> str:
        if regime == "III":
            return (
                f"{', and '.join(self._long)}: steps of SGD move the student along by numbers of order 1, and no ODE "
                "for order parameters holds; subtract the mean, remove the direction, or run SGD"
            )
        if regime == "II":
            return (
                f"samples are a mixture: {'; '.join(self._mixtures)}; the conventional theory is off by about "
                f"{ERROR_PER_VARIANCE * max(self._mixtures.values()):.1g} in order parameters; standardising "
                "coordinates does not help; give the components as [[inputs.components]] of a problem, whose method "
                "assumptions says what it gets wrong"
            )
        if regime == "IV":
            return (
                f"variances along directions scatter by {max(self.anisotropy, 0.0) ** 0.5:.3g} of their mean: latents "
                "are correlated, or of other variances; whiten them, and let the features undo it"
            )
        if regime == "I":
            return (
                f"coordinates are not Gaussian (mean kurtosis {self.coordinate_kurtosis:.3g}), and fields are "
                f"({self.field_kurtosis:.3g}): the conventional theory holds"
            )
        return "nothing contradicts the conventional theory"

    def _more(self) -> list[str]:
        lines = [
            f"  kurtosis of a student's fields: {self.field_kurtosis:.3g} +- {self.field_error:.2g} (3 if Gaussian)"
        ]
        if "II" not in self.regimes and self._mixtures:
            size = ERROR_PER_VARIANCE * max(self._mixtures.values())
            lines.append(
                f"  {'; '.join(self._mixtures)}: beyond chance, and too little to matter, as the conventional theory "
                f"is off by about {size:.1g} in order parameters"
            )
        if len(self.teacher_kurtosis):
            listed = ", ".join(f"{value:.3g}" for value in self.teacher_kurtosis)
            lines.append(f"  kurtosis of the teacher's fields: {listed}")
        if self.kind == "latents" and abs(self.variance - 1.0) > CHANCE_ERRORS * np.sqrt(
            2.0 / self.samples / self.coordinates
        ):
            lines.append("  divide them by the root of their variance, for which f then has other moments")
        return lines


def examine_samples(
    samples: ArrayLike,
    kind: Literal["latents", "inputs"] = "latents",
    teacher: ArrayLike | None = None,
    seed: int = 0,
) -> SampleReport:
    """Say which assumptions of the conventional theory of hidden manifolds fail on samples.

    Parameters
    ----------
    samples : array_like, shape (samples, coordinates)
        Latents C, or inputs x; at least 100 samples of 10 coordinates. Rows are taken for independent.
    kind : {"latents", "inputs"}
        Latents should have the same variance in all directions, inputs need not.
    teacher : array_like, shape (coordinates, teachers), optional
        Vectors of the teacher, whose fields are examined, too.
    seed : int
        Of the random directions and halves.

    Returns
    -------
    SampleReport
        Numbers with standard errors; `regimes` says what they mean, and `str` in words.

    Raises
    ------
    InputError
        If the array is too small, has another shape, holds what is not finite, or does not vary.

    Notes
    -----
    Source: hidden_manifold.md, section 4.
    """
    X = _checked(samples, kind)
    vectors = _checked_teacher(teacher, X.shape[1])
    rng = np.random.default_rng(as_whole(seed, "seed", "give a whole number from 0 on", least=0))
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
        coordinate_kurtosis = float(_kurtosis(away[:, away.any(axis=0)]).mean())
        bar.update()
    fields = away @ _unit(rng.standard_normal((D, DIRECTIONS)))
    return SampleReport(
        kind=kind,
        samples=n,
        coordinates=D,
        variance=variance,
        mean_share=float(centre @ centre / variance / D - 1.0 / n),
        radius_spread=radius,
        radius_error=radius_error,
        anisotropy=square - 1.0,
        anisotropy_error=square_error,
        leading_share=float(max(along.var(ddof=1) - 1.0, 0.0) / D),
        leading_kurtosis=float(_kurtosis(along[:, None])[0]),
        field_kurtosis=float(_kurtosis(fields).mean()),
        coordinate_kurtosis=coordinate_kurtosis,
        leading_score=float(kurtosistest(along).statistic),
        field_error=float(np.sqrt(24.0 / n / min(DIRECTIONS, D))),
        coordinate_error=float(np.sqrt(24.0 / n / D)),
        teacher_kurtosis=_kurtosis(away @ vectors),
    )


def _checked(samples: ArrayLike, kind: str) -> FloatArray:
    if kind not in ("latents", "inputs"):
        raise InputError(f"kind = {kind!r:.40}: it is 'latents' or 'inputs'")
    try:
        X = np.asarray(samples, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError("samples hold what is no number; give an array of shape (samples, coordinates)") from error
    if X.ndim != 2 or len(X) < FEWEST_SAMPLES or X.shape[1] < FEWEST_COORDINATES:
        raise InputError(
            f"samples have the shape {X.shape}; give at least {FEWEST_SAMPLES} rows of at least {FEWEST_COORDINATES} "
            "coordinates"
        )
    if not np.isfinite(X).all():
        raise InputError(f"samples[{np.argwhere(~np.isfinite(X))[0].tolist()}] is not finite; remove such rows")
    return X


def _checked_teacher(teacher: ArrayLike | None, coordinates: int) -> FloatArray:
    if teacher is None:
        return np.zeros((coordinates, 0))
    vectors = as_array(teacher, "teacher", f"give an array of {coordinates} rows, a column for each vector")
    if vectors.ndim != 2 or len(vectors) != coordinates or not np.isfinite(vectors).all():
        raise InputError(f"teacher has the shape {vectors.shape}; give a column of {coordinates} numbers per vector")
    return vectors


def _unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=0))


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
    """Variance of |C|^2/D beyond that which covariances and single coordinates make, and its standard error.

    A Gaussian has 2 tr(Cov^2)/tr(Cov)^2, and independent coordinates add what their fourth moments differ by.
    """
    radius = (away**2).mean(axis=1)
    apart = radius - radius.mean()
    variance = float((apart**2).sum() / (len(away) - 1))
    error = np.sqrt(max(float((apart**4).mean()) - variance**2, 0.0) / len(away))
    own = float(((away**4).mean(axis=0) - 3.0 * (away**2).mean(axis=0) ** 2).sum()) / away.shape[1] ** 2
    return variance - 2.0 * square / away.shape[1] - own, float(error)


def _kurtosis(fields: FloatArray) -> FloatArray:
    """Kurtosis of columns, 3 on average for Gaussian samples."""
    apart, n = fields - fields.mean(axis=0), len(fields)
    ratio = (apart**4).mean(axis=0) / np.maximum((apart**2).mean(axis=0) ** 2, np.finfo(float).tiny)
    return np.asarray((n + 1) / (n - 1) * ratio)
