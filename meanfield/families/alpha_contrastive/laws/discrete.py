"""Laws of finitely many atoms: weighted points, and latent categories and sums (alpha_contrastive.md, section 3)."""

from __future__ import annotations

from itertools import product
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from meanfield.families.alpha_contrastive.laws.shared import Matrix, Probabilities, check_rows, check_sum
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.typing import FloatArray, IntArray


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

    @property
    def sample_of(self) -> IntArray | None:
        """Sample that each atom is a view of, shape (atoms,); None where both views of a sample are the same atom."""
        return None


class Points(DiscreteLaw):
    """Points with probabilities."""

    law: Literal["points"] = "points"
    points: Annotated[Matrix, Field(max_length=400)] = Field(  # pairs of them are kept
        description="one list of coordinates per point, for instance [[1.5, 0.0], [0.3, 1.2]]"
    )
    probabilities: Probabilities | None = Field(
        default=None, description="probability of each point; they add up to 1, and are equal if nothing is said"
    )

    sample: Annotated[tuple[Annotated[int, Field(ge=0, lt=400)], ...], Field(strict=False)] | None = Field(
        default=None,
        description="number of the sample that each point is a view of, such as [0, 0, 1, 1]: two views of a sample "
        "are drawn independently, and both are the same point if nothing is said",
    )

    @after_fields
    def _points_fit(self) -> None:
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
        if self.sample is not None:
            self._check_samples(self.sample)

    def _check_samples(self, sample: tuple[int, ...]) -> None:
        if len(sample) != len(self.points):
            raise FieldError(
                "sample", f"has {len(sample)} number(s), but there are {len(self.points)} points; give one each"
            )
        if set(sample) != set(range(max(sample) + 1)) or max(sample) < 1:
            raise FieldError(
                "sample",
                f"{list(sample)} numbers no two samples from 0 on; use each number up to the last",
            )

    @property
    def sample_of(self) -> IntArray | None:
        """See `DiscreteLaw.sample_of`."""
        return None if self.sample is None else np.array(self.sample, dtype=np.int64)

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

    @after_fields
    def _sizes_fit(self) -> None:
        check_directions(self.directions, self.probabilities)
        check_sum(self.probabilities)
        if len({*zip(*self.directions, strict=True)}) < 2:
            raise FieldError("directions", "hold a single pattern, so that there is no pair to tell apart; add another")

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
    # Their 2^M values are enumerated.
    probabilities: Annotated[
        tuple[Annotated[float, Field(gt=0, lt=1)], ...], Field(strict=False, min_length=1, max_length=10)
    ] = Field(description="q_m: pattern m is on, y_m = sqrt((1-q_m)/q_m), with this probability, else -sqrt(q/(1-q))")

    @after_fields
    def _sizes_fit(self) -> None:
        check_directions(self.directions, self.probabilities)

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
