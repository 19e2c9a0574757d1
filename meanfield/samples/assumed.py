"""What a problem assumes of the inputs that it trains on, as the family says it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from meanfield.ingredients.laws.base import HiddenPart
from meanfield.typing import FloatArray


class Assumed(NamedTuple):
    """Assumptions about inputs x = U d(c)/sqrt(N) + a with white Gaussian a.

    Parameters
    ----------
    noise : float
        Variance of a coordinate of a.
    along : float
        Variance of u.a/sqrt(N), 0 if the noise has no part along features.
    laws : tuple of HiddenPart
        Of independent groups of the hidden variables c; none if there is no signal.
    samples_per_time : float
        Number of samples that training takes in the time 1, which is N steps, over N.
    squared_step : callable, optional
        Returns Lambda at the start, the mean of |dw|^2 of a step with the largest values of schedules;
        raises `InputError` where nothing but runs knows it.
    squared_length : float
        |w|^2/N at the start.
    noise_key, student_key : str
        Key of the noise, and of the tables of students, where the problem has some.
    """

    noise: float
    along: float
    laws: tuple[HiddenPart, ...]
    samples_per_time: float
    squared_step: Callable[[], float] | None = None
    squared_length: float = 1.0
    noise_key: str = ""
    student_key: str = ""

    def fields(self, rng: Generator, count: int, features: int) -> FloatArray:
        """Independent draws of the fields u.x/sqrt(N) of all features, shape (count, features)."""
        parts = [law.sample(rng, (count,)) for law in self.laws] or [np.zeros((count, features))]
        return np.asarray(np.concatenate(parts, axis=1) + np.sqrt(self.along) * rng.standard_normal((count, features)))
