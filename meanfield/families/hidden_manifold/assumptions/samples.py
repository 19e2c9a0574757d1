"""Which assumption of the conventional theory fails on a person's own data: an array of latents or of inputs.

Every number is an estimate from samples, held against its standard error or against what Gaussian samples show.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from meanfield.arguments import as_whole
from meanfield.errors import InputError
from meanfield.samples.statistics import (
    CHANCE_ERRORS,
    Statistics,
    checked_samples,
    checked_vectors,
    kurtosis,
    statistics_of,
)
from meanfield.typing import FloatArray

LONG_SHARE = 0.05
"""Share of |C|^2 in one direction, or in the mean, from which it counts as of order D. One step of SGD moves the
student's overlap with the direction by the learning rate times this share."""

ERROR_PER_VARIANCE = 0.1
"""Largest error of R until t = 20 under the conventional theory, by relative variance of |C|^2/D: 0.0045 for 0.043,
0.022 for 0.2, 0.095 for 0.71, by the method assumptions on two scales with the teacher and student of the example."""


@dataclass(frozen=True)
class SampleReport(Statistics):
    """Law of samples beside that which the conventional theory assumes.

    Parameters
    ----------
    kind : str
        `latents` or `inputs`.
    teacher_kurtosis : ndarray, shape (teachers,)
        Kurtosis of the teacher's fields, if a teacher was given.
    """

    kind: str
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
        found = []
        if self.mean_share > LONG_SHARE:
            found.append(f"the mean has the share {self.mean_share:.3g} of |C|^2/D")
        if self.leading_share > LONG_SHARE + self.leading_chance / self.coordinates:
            found.append(f"the leading direction has the share {self.leading_share:.3g} of the variance")
        return found

    @property
    def _mixtures(self) -> dict[str, float]:
        """Signs of a mixture beyond chance, in words, and their sizes, such as the relative variance of |C|^2/D."""
        found = {}
        if self.radius_spread > CHANCE_ERRORS * self.radius_error:
            words = f"|C|^2/D has a standard deviation of {self.radius_spread**0.5:.3g} beyond chance"
            found[words] = self.radius_spread
        if self.has_other_tails:
            words = f"the kurtosis of random fields is {self.field_kurtosis:.3g} (3 if Gaussian)"
            found[words] = abs(self.field_kurtosis / 3.0 - 1.0)
        if abs(self.leading_score) > CHANCE_ERRORS:
            words = f"the kurtosis along the leading direction is {self.leading_kurtosis:.3g} (3 if Gaussian)"
            found[words] = self.leading_tails
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
    if kind not in ("latents", "inputs"):
        raise InputError(f"kind = {kind!r:.40}: it is 'latents' or 'inputs'")
    X = checked_samples(samples)
    vectors = np.zeros((X.shape[1], 0)) if teacher is None else checked_vectors(teacher, "teacher", X.shape[1])
    rng = np.random.default_rng(as_whole(seed, "seed", "give a whole number from 0 on", least=0))
    found, away = statistics_of(X, rng)
    return SampleReport(**asdict(found), kind=kind, teacher_kurtosis=kurtosis(away @ vectors))
