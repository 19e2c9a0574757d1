"""Places that are independent given a latent variable, each with a law of its own (paper, assumption 2)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from meanfield.families.alpha_contrastive.laws.shared import Matrix, Probabilities, Vector, check_rows, check_sum
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.typing import FloatArray

Matrices = Annotated[tuple[Matrix, ...], Field(strict=False, min_length=1, max_length=100)]
"""A matrix for each place."""


class Conditional(Part):
    """Places that are independent given a latent variable z."""

    law: Literal["conditional"] = "conditional"
    probabilities: Probabilities = Field(description="probability of each value of z; they add up to 1")
    points: Matrices | None = Field(
        default=None,
        description="a list of points for each place, for instance [[[1.0, 0.0], [0.0, 1.0]]]",
    )
    chances: Matrices | None = Field(
        default=None, description="chances of these points: per place a list per value of z, each adding up to 1"
    )
    means: Matrices | None = Field(
        default=None, description="of Gaussians in place of points: per place the mean for each value of z"
    )
    covariance: Annotated[float, Field(gt=0, le=1e6), OrSchedule(may_vanish=False)] | Matrix | None = Field(
        default=None, description="of these Gaussians: a number s2 for s2 times the identity, or a matrix"
    )
    augmentation: bool = Field(default=True, description="whether two views share z alone, or are the same")

    @after_fields
    def _tables_fit(self) -> None:
        check_sum(self.probabilities)
        if (self.points is None) == (self.means is None):
            raise FieldError("points", "or means are to be given, one of the two: a list for each place")
        for key, other in (("chances", "points"), ("covariance", "means")):
            if (getattr(self, key) is None) != (getattr(self, other) is None):
                raise FieldError(key, f"belongs to {other}; give both, or neither")
        rows = [row for place in self.points or self.means or () for row in place]
        check_rows("points" if self.points else "means", tuple(rows), 2)
        if self.means is not None:
            self._check_counts("means", self.means)
            self._check_covariance()
        elif self.chances is not None and self.points is not None:
            self._check_chances(self.points, self.chances)

    def _check_counts(self, key: str, places: tuple[Any, ...]) -> None:
        for k, place in enumerate(places):
            if len(place) != len(self.probabilities):
                raise FieldError(
                    key,
                    f"has {len(place)} row(s) at place {k}, not {len(self.probabilities)}; give one per value of z",
                )

    def _check_chances(self, points: tuple[Any, ...], chances: tuple[tuple[Vector, ...], ...]) -> None:
        if len(points) != len(chances):
            raise FieldError("chances", f"has {len(chances)} place(s), but points has {len(points)}; give as many")
        self._check_counts("chances", chances)
        for k, (place, rows) in enumerate(zip(points, chances, strict=True)):
            for row in rows:
                if len(row) != len(place) or min(row) < 0.0 or abs(sum(row) - 1.0) > 1e-9:  # rounding
                    raise FieldError(
                        "chances",
                        f"{list(row)} at place {k}: give {len(place)} numbers >= 0 that add up to 1, one per point",
                    )

    def _check_covariance(self) -> None:
        if isinstance(self.covariance, Schedule):
            return
        S = self.common_covariance
        if S.shape != (self.dimension, self.dimension) or not np.array_equal(S, S.T) or np.linalg.eigvalsh(S)[0] <= 0.0:
            raise FieldError(
                "covariance",
                f"is to be a number, or a symmetric {self.dimension} x {self.dimension} matrix with eigenvalues > 0",
            )

    @property
    def places(self) -> int:
        """Number of places."""
        return len(self.points or self.means or ())

    @property
    def dimension(self) -> int:
        """Number of coordinates of a place."""
        return len((self.points or self.means or ())[0][0])

    @property
    def weights(self) -> FloatArray:
        """Probabilities of z."""
        return np.array(self.probabilities) / sum(self.probabilities)

    @property
    def atoms(self) -> FloatArray:
        """Points of each place, shape (places, points, coordinates), with zeros where a place has fewer."""
        assert self.points is not None
        most = max(len(place) for place in self.points)
        found = np.zeros((self.places, most, self.dimension))
        for k, place in enumerate(self.points):
            found[k, : len(place)] = place
        return found

    @property
    def chances_of_atoms(self) -> FloatArray:
        """Chances of these, shape (places, values of z, points)."""
        assert self.chances is not None
        found = np.zeros((self.places, len(self.probabilities), self.atoms.shape[1]))
        for k, rows in enumerate(self.chances):
            found[k, :, : len(rows[0])] = rows
        return found

    @property
    def centres(self) -> FloatArray:
        """Means of Gaussians, shape (places, values of z, coordinates)."""
        return np.array(self.means, dtype=float)

    @property
    def common_covariance(self) -> FloatArray:
        """Covariance of Gaussians."""
        given: Any = self.covariance
        if isinstance(given, float | int | Schedule):
            return np.asarray(given * np.eye(self.dimension))
        return np.array(given, dtype=float)
