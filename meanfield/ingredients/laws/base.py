"""Base classes of laws: types of their keys, checks of probabilities, and sampling from atoms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator
from pydantic import Field

from meanfield.ingredients.part import Part
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.typing import FloatArray

LARGEST = 1e6
"""Largest |c| and largest E[c^2]: high moments of c enter, and must be finite numbers."""

SecondMoment = Annotated[
    float,
    Field(gt=0, le=LARGEST, description="E[c^2] of the hidden variable, for instance 1.1"),
    OrSchedule(may_vanish=False),
]
Values = Annotated[tuple[Annotated[float, Field(ge=-LARGEST, le=LARGEST)], ...], Field(strict=False, min_length=1)]
Probabilities = Annotated[
    tuple[float, ...],
    Field(strict=False, min_length=1, description="their probabilities in [0, 1], adding up to 1"),
]
Components = tuple[FloatArray, FloatArray, FloatArray]
"""Probabilities (A,), means (A, d) and variances (A, d) of a mixture of Gaussians."""


class Recipe(NamedTuple):
    """Recipe to draw c from uniform, normal and gamma variables: mean_a + box (2 u - 1) + deviation_a G^power n.

    An exponential one is G^power exp(mean_a + deviation_a n).

    Parameters
    ----------
    probability : ndarray, shape (components,)
        Probability of component a.
    mean, deviation : ndarray, shape (components, dimension)
    box : float
        Half-width of what the uniform variable u adds to a law of one component.
    gamma_shape, gamma_power : float
        G ~ Gamma(gamma_shape), of a shape that is at least 1; a power of 0 leaves it out.
    exponential : bool
    """

    probability: FloatArray
    mean: FloatArray
    deviation: FloatArray
    box: float = 0.0
    gamma_shape: float = 1.0
    gamma_power: float = 0.0
    exponential: bool = False


class HiddenPart(Part):
    """Interface of the law of hidden variables for the closures and SGD.

    A law is a mixture of Gaussians, possibly of infinitely many or of none wider than 0. `components` lists them.
    Moments may also be those of some steps, shape (steps, 1, 1), for `recipe` and for samples of shape (steps, m).
    """

    @property
    def dimension(self) -> int:
        """Number of hidden variables that are drawn together."""
        return 1

    @property
    def exact(self) -> bool:
        """Whether the law has finitely many components."""
        return True

    @property
    def box(self) -> float:
        """Half-width of a uniform law, else 0."""
        return 0.0

    def components(self, power: float) -> Components:
        """Components of the law, or of one that stands for it in averages of smooth functions.

        Parameters
        ----------
        power : float
            Highest power of c that is averaged.
        """
        raise NotImplementedError

    @property
    def largest_power(self) -> float:
        """Highest power of c whose average `nodes` resolve; where it is finite, those of higher ones may not exist."""
        return math.inf

    def nodes(self, count: int, breaks: Sequence[float] = ()) -> Components:
        """Finitely many components that stand for the law in averages of any function, with errors that fall with them.

        Parameters
        ----------
        count : int
            Their number, or that between two breaks, unless the law has finitely many of its own.
        breaks : sequence of float, optional
            Values of c at which the function jumps or bends.
        """
        return self.components(0.0)

    def recipe(self) -> Recipe:
        """Recipe by which compiled code draws c; a law that is no finite mixture of Gaussians has one of its own."""
        probability, mean, variance = self.components(0.0)
        return Recipe(probability, mean, np.sqrt(variance))

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """Independent draws of c, shape (*size, dimension); the reference for draws by the recipe.

        Draws of n and then of m more are those of n + m at once.
        """
        raise NotImplementedError


class AtomicPart(HiddenPart):
    """Hidden law with finitely many values."""

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """Values, shape (A, dimension), and their probabilities, shape (A,)."""
        raise NotImplementedError

    def components(self, power: float) -> Components:
        """See `HiddenPart.components`."""
        values, probability = self.atoms
        return probability, values, np.zeros_like(values)

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """See `HiddenPart.sample`."""
        values, probability = self.atoms
        chosen = draw_index(probability, rng, size)
        return np.asarray(values[chosen] if values.ndim == 2 else np.take_along_axis(values, chosen[..., None], axis=1))


def draw_index(probability: FloatArray, rng: Generator, size: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype]:
    """Independent draws of the index of a component; probabilities may be those of steps, shape (steps, 1, A)."""
    cumulative, drawn = np.cumsum(probability, axis=-1)[..., :-1], rng.random(size)
    if probability.ndim > 1:
        return np.asarray((cumulative <= drawn[..., None]).sum(axis=-1))
    return np.searchsorted(cumulative, drawn, side="right")


def column(values: Sequence[float]) -> FloatArray:
    """Values of one variable as the rows of a matrix."""
    return np.array(values, dtype=float)[:, None]


def check_probabilities(count: int, probabilities: Sequence[float], what: str = "value") -> None:
    """Refuse numbers that are not the probabilities of `count` values."""
    if count != len(probabilities):
        raise ValueError(f"{count} {what}s but {len(probabilities)} probabilities; give one probability per {what}")
    outside = [p for p in probabilities if not 0 <= p <= 1]
    if outside:
        raise ValueError(f"probability {outside[0]} is outside [0, 1]; correct it")
    total = sum(probabilities)
    if abs(total - 1) > 1e-9:
        raise ValueError(f"probabilities add up to {total:.9g}, not to 1; correct or normalise them")


def check_not_zero(values: FloatArray, probabilities: Sequence[float]) -> None:
    """Refuse a variable that is always 0."""
    likely = values[np.array(probabilities) > 0]
    if np.any(np.all(likely == 0, axis=0)):
        raise ValueError("the law is concentrated at 0, so there is no feature; give a value other than 0")
