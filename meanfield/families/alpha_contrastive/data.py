"""Laws of the data: weighted points, Gaussian mixtures, latent categories and sums, and tokens in places.

Source: alpha_contrastive.md, sections 3 and 7.
"""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from meanfield.ingredients.part import FieldError, Part
from meanfield.typing import FloatArray

SUM_TOLERANCE = 1e-9
"""Largest deviation from 1 of a sum of probabilities, by rounding."""

NEGATIVE = 1e-12
"""Most negative eigenvalue of a covariance, relative to the largest, that is rounding."""

MOST_POINTS = 400
"""Largest number of points: pairs of them are kept."""

MOST_PATTERNS = 10
"""Largest number of patterns of a latent summation, whose 2^M values are enumerated."""

MOST_TOKENS = 1000
"""Largest number of places, of tokens of a vocabulary, and of generators."""

WILDCARD = -1
"""What stands for any token in a pattern."""

Number = Annotated[float, Field(ge=-1e6, le=1e6)]
Vector = Annotated[tuple[Number, ...], Field(strict=False, min_length=1, max_length=MOST_TOKENS)]
Matrix = Annotated[tuple[Vector, ...], Field(strict=False, min_length=1, max_length=MOST_TOKENS)]
Probability = Annotated[float, Field(gt=0, le=1)]
Probabilities = Annotated[tuple[Probability, ...], Field(strict=False, min_length=1, max_length=MOST_TOKENS)]
Token = Annotated[int, Field(ge=WILDCARD, lt=MOST_TOKENS)]
Pattern = Annotated[tuple[Token, ...], Field(strict=False, min_length=1, max_length=MOST_TOKENS)]
Count = Annotated[int, Field(ge=1, le=MOST_TOKENS)]


def check_sum(probabilities: tuple[float, ...]) -> None:
    """Refuse probabilities that do not add up to 1.

    Raises
    ------
    FieldError
    """
    total = sum(probabilities)
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise FieldError("probabilities", f"add up to {total:.9g}, not to 1; correct or normalise them")


def check_rows(key: str, rows: tuple[tuple[float, ...], ...], least: int) -> None:
    """Refuse rows of different lengths, or of fewer than `least` numbers.

    Raises
    ------
    FieldError
    """
    for k, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise FieldError(
                key,
                f"row {k} has {len(row)} number(s), and row 0 has {len(rows[0])}; give rows of the same length",
            )
    if len(rows[0]) < least:
        raise FieldError(key, f"rows have {len(rows[0])} number(s); give {least} or more")


class DiscreteLaw(Part):
    """Law of finitely many atoms, which pairs of samples visit."""

    @property
    def atoms(self) -> FloatArray:
        """Values, shape (atoms, coordinates)."""
        raise NotImplementedError

    @property
    def weights(self) -> FloatArray:
        """Probabilities, shape (atoms,)."""
        raise NotImplementedError

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return int(self.atoms.shape[1])


class Points(DiscreteLaw):
    """Points with probabilities."""

    law: Literal["points"] = "points"
    points: Annotated[Matrix, Field(max_length=MOST_POINTS)] = Field(
        description="one list of coordinates per point, for instance [[1.5, 0.0], [0.3, 1.2]]"
    )
    probabilities: Probabilities | None = Field(
        default=None, description="probability of each point; they add up to 1, and are equal if nothing is said"
    )

    @model_validator(mode="after")
    def _points_fit(self) -> Points:
        check_rows("points", self.points, 2)
        if len(set(self.points)) < 2:
            raise FieldError("points", "are all the same, so that there is no pair to tell apart; add another point")
        if self.probabilities is not None:
            if len(self.probabilities) != len(self.points):
                raise FieldError(
                    "probabilities",
                    f"has {len(self.probabilities)} number(s), but there are {len(self.points)} points; give one each",
                )
            check_sum(self.probabilities)
        return self

    @property
    def atoms(self) -> FloatArray:
        """See `DiscreteLaw.atoms`."""
        return np.array(self.points, dtype=float)

    @property
    def weights(self) -> FloatArray:
        """See `DiscreteLaw.weights`."""
        if self.probabilities is None:
            return np.full(len(self.points), 1.0 / len(self.points))
        return np.array(self.probabilities) / sum(self.probabilities)


class LatentCategorical(DiscreteLaw):
    """One of some patterns at a time."""

    law: Literal["latent_categorical"] = "latent_categorical"
    directions: Matrix = Field(
        description="the patterns u_m as columns: one list per coordinate, for instance [[1.0, 0.0], [0.0, 1.0]]"
    )
    probabilities: Probabilities = Field(description="p_m, probability of each pattern; they add up to 1")

    @model_validator(mode="after")
    def _sizes_fit(self) -> LatentCategorical:
        check_directions(self.directions, self.probabilities)
        check_sum(self.probabilities)
        if len({*zip(*self.directions, strict=True)}) < 2:
            raise FieldError("directions", "hold a single pattern, so that there is no pair to tell apart; add another")
        return self

    @property
    def atoms(self) -> FloatArray:
        """See `DiscreteLaw.atoms`."""
        return np.array(self.directions, dtype=float).T.copy()

    @property
    def weights(self) -> FloatArray:
        """See `DiscreteLaw.weights`."""
        return np.array(self.probabilities) / sum(self.probabilities)


class LatentSummation(DiscreteLaw):
    """Sum of patterns with independent coefficients of mean 0 and variance 1, x = U y."""

    law: Literal["latent_summation"] = "latent_summation"
    directions: Matrix = Field(
        description="the patterns u_m as columns: one list per coordinate, for instance [[1.0, 0.05], [0.0, 1.0]]"
    )
    probabilities: Annotated[
        tuple[Annotated[float, Field(gt=0, lt=1)], ...], Field(strict=False, min_length=1, max_length=MOST_PATTERNS)
    ] = Field(description="q_m: pattern m is on, y_m = sqrt((1-q_m)/q_m), with this probability, else -sqrt(q/(1-q))")

    @model_validator(mode="after")
    def _sizes_fit(self) -> LatentSummation:
        check_directions(self.directions, self.probabilities)
        return self

    @property
    def atoms(self) -> FloatArray:
        """See `DiscreteLaw.atoms`; the number of atoms is 2^M."""
        q = np.array(self.probabilities)
        on, off = np.sqrt((1.0 - q) / q), -np.sqrt(q / (1.0 - q))
        values = np.array(list(product(*zip(on, off, strict=True))))
        return np.asarray(values @ np.array(self.directions).T)

    @property
    def weights(self) -> FloatArray:
        """See `DiscreteLaw.weights`."""
        return np.array([np.prod(chosen) for chosen in product(*((q, 1.0 - q) for q in self.probabilities))])


def check_directions(directions: tuple[tuple[float, ...], ...], probabilities: tuple[float, ...]) -> None:
    """Refuse directions without a column for each probability, or with a column of zeros.

    Raises
    ------
    FieldError
    """
    check_rows("directions", directions, 1)
    if len(directions) < 2:
        raise FieldError("directions", "has a single row, which is a sphere of two points; give 2 or more coordinates")
    if len(directions[0]) != len(probabilities):
        raise FieldError(
            "directions",
            f"has {len(directions[0])} column(s), but probabilities has {len(probabilities)} number(s); give a column "
            "for each",
        )
    empty = np.flatnonzero(~np.array(directions, dtype=float).any(axis=0))
    if len(empty):
        raise FieldError("directions", f"column {empty[0]} is 0, and so no pattern; change or remove it")


class GaussianMixture(Part):
    """Mixture of Gaussians."""

    law: Literal["gaussian_mixture"] = "gaussian_mixture"
    probabilities: Probabilities = Field(description="probability of each component; they add up to 1")
    means: Matrix = Field(description="mean of each component, for instance [[1.0, 0.0], [-0.5, 0.8]]")
    covariance: (
        Annotated[float, Field(gt=0, le=1e6)]
        | Annotated[tuple[Annotated[float, Field(gt=0, le=1e6)], ...], Field(strict=False, min_length=1)]
        | Matrix
        | Annotated[tuple[Matrix, ...], Field(strict=False, min_length=1)]
    ) = Field(
        description="a number s2 for s2 times the identity, a matrix, or a list with one number or matrix per component"
    )

    @model_validator(mode="after")
    def _sizes_fit(self) -> GaussianMixture:
        check_rows("means", self.means, 2)
        check_sum(self.probabilities)
        count, d = len(self.means), len(self.means[0])
        if len(self.probabilities) != count:
            raise FieldError(
                "probabilities",
                f"has {len(self.probabilities)} number(s), but means has {count} component(s); give one each",
            )
        matrices = self._matrices()
        if len(matrices) not in (1, count):
            raise FieldError("covariance", f"has {len(matrices)} entries, but means has {count}; give one or one each")
        for matrix in matrices:
            if matrix.shape != (d, d):
                raise FieldError(
                    "covariance",
                    f"has shape {matrix.shape}, but means have {d} coordinates; give a number or a {d} x {d} matrix",
                )
            if not np.array_equal(matrix, matrix.T):
                i, j = np.argwhere(matrix != matrix.T)[0]
                raise FieldError(
                    "covariance",
                    f"is not symmetric: entry [{i}][{j}] is {matrix[i, j]:g}, and [{j}][{i}] {matrix[j, i]:g}; make it "
                    "so",
                )
            values = np.linalg.eigvalsh(matrix)
            if values[0] <= NEGATIVE * values[-1]:
                raise FieldError(
                    "covariance",
                    f"has the eigenvalue {values[0]:.6g}; all are to be greater than 0: raise its diagonal",
                )
        return self

    def _matrices(self) -> list[FloatArray]:
        """Covariances as they are given, one or one for each component."""
        given: Any = self.covariance
        d = len(self.means[0])
        if isinstance(given, float | int):
            return [given * np.eye(d)]
        if isinstance(given[0], float | int):
            return [number * np.eye(d) for number in given]
        if isinstance(given[0][0], float | int):
            return [_rectangular(given)]
        return [_rectangular(matrix) for matrix in given]

    @property
    def covariances(self) -> FloatArray:
        """Covariances, shape (components, coordinates, coordinates)."""
        matrices = self._matrices()
        return np.array(matrices * (len(self.means) if len(matrices) == 1 else 1))

    @property
    def centres(self) -> FloatArray:
        """Means, shape (components, coordinates)."""
        return np.array(self.means, dtype=float)

    @property
    def weights(self) -> FloatArray:
        """Probabilities of the components, shape (components,)."""
        return np.array(self.probabilities) / sum(self.probabilities)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.means[0])


def _rectangular(rows: tuple[tuple[float, ...], ...]) -> FloatArray:
    check_rows("covariance", rows, 1)
    return np.array(rows, dtype=float)


class Tokens(Part):
    """Tokens in places: generators mark some places, other places hold any token."""

    law: Literal["tokens"] = "tokens"
    places: Count = Field(description="K, the number of places, for instance 10")
    vocabulary: Count = Field(description="d, the number of tokens that a place may hold, for instance 20")
    patterns: Annotated[tuple[Pattern, ...], Field(strict=False, min_length=1, max_length=MOST_TOKENS)] | None = Field(
        default=None, description="one row of tokens per generator, -1 for any token, for instance [[0, 1, -1, -1]]"
    )
    generators: Count | None = Field(default=None, description="G, the number of generators that are drawn")
    tokens_per_place: Count | None = Field(default=None, description="P, the number of tokens that drawn patterns use")
    pattern_tokens: Count | None = Field(default=None, description="L, the number of places that a generator marks")
    seed: int | None = Field(default=None, ge=0, lt=2**63, description="seed of the generators that are drawn")
    magnitudes: Vector | None = Field(
        default=None, description="length of the vector of each token, all 1 if nothing is said"
    )
    augmentation: bool = Field(
        default=True, description="whether the second view has other tokens where the generator marks no place"
    )

    @model_validator(mode="after")
    def _patterns_fit(self) -> Tokens:
        drawn = ("generators", "tokens_per_place", "pattern_tokens", "seed")
        given = [key for key in drawn if getattr(self, key) is not None]
        if self.patterns is None:
            for key in drawn:
                if getattr(self, key) is None:
                    raise FieldError(key, "is missing; add it, or give patterns")
            self._check_drawn()
            return self
        if given:
            raise FieldError(given[0], f"is for generators that are drawn; remove {', '.join(given)}, or patterns")
        for g, row in enumerate(self.patterns):
            if len(row) != self.places:
                raise FieldError(
                    "patterns", f"row {g} has {len(row)} tokens, but places = {self.places}; give one each"
                )
            if max(row) >= self.vocabulary:
                raise FieldError(
                    "patterns", f"row {g} has the token {max(row)}, but vocabulary = {self.vocabulary}; count from 0"
                )
        return self

    def _check_drawn(self) -> None:
        for key, most, what in (
            ("tokens_per_place", self.vocabulary, "vocabulary"),
            ("pattern_tokens", self.places, "places"),
        ):
            if getattr(self, key) > most:
                raise FieldError(key, f"= {getattr(self, key)} is more than {what} = {most}; lower it")

    @model_validator(mode="after")
    def _magnitudes_fit(self) -> Tokens:
        if self.magnitudes is not None:
            if len(self.magnitudes) != self.vocabulary:
                raise FieldError(
                    "magnitudes",
                    f"has {len(self.magnitudes)} number(s), but vocabulary = {self.vocabulary}; give one per token",
                )
            if min(self.magnitudes) <= 0:
                raise FieldError("magnitudes", f"has {min(self.magnitudes):g}; lengths are greater than 0")
        return self


DataLaw = Annotated[Points | GaussianMixture | LatentCategorical | LatentSummation | Tokens, Field(discriminator="law")]
