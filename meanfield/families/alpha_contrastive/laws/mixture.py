"""Mixtures of Gaussians."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from meanfield.families.alpha_contrastive.laws.shared import Matrix, Probabilities, check_rows, check_sum
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.typing import FloatArray


class GaussianMixture(Part):
    """Mixture of Gaussians."""

    law: Literal["gaussian_mixture"] = "gaussian_mixture"
    probabilities: Probabilities = Field(description="probability of each component; they add up to 1")
    means: Matrix = Field(description="mean of each component, for instance [[1.0, 0.0], [-0.5, 0.8]]")
    covariance: (
        Annotated[float, Field(gt=0, le=1e6), OrSchedule(may_vanish=False)]
        | Annotated[tuple[Annotated[float, Field(gt=0, le=1e6)], ...], Field(strict=False, min_length=1)]
        | Matrix
        | Annotated[tuple[Matrix, ...], Field(strict=False, min_length=1)]
    ) = Field(
        description="a number s2 for s2 times the identity, a matrix, or a list with one number or matrix per component"
    )
    augmentation: bool = Field(
        default=False, description="whether two views share the component alone, or are the same"
    )

    @after_fields
    def _sizes_fit(self) -> None:
        check_rows("means", self.means, 2)
        check_sum(self.probabilities)
        count, d = len(self.means), len(self.means[0])
        if len(self.probabilities) != count:
            raise FieldError(
                "probabilities",
                f"has {len(self.probabilities)} number(s), but means has {count} component(s); give one each",
            )
        matrices = [np.eye(d)] if isinstance(self.covariance, Schedule) else self._matrices()
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
            if values[0] <= 1e-12 * values[-1]:  # rounding
                raise FieldError(
                    "covariance",
                    f"has the eigenvalue {values[0]:.6g}; all are to be greater than 0: raise its diagonal",
                )

    def _matrices(self) -> list[FloatArray]:
        """Covariances as they are given, one or one for each component."""
        given: Any = self.covariance
        d = len(self.means[0])
        if isinstance(given, float | int | Schedule):
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
