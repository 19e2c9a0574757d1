"""Starts of the filters: uniform on the sphere, a density on the circle, random or given filters."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from meanfield.families.alpha_contrastive.laws.shared import Matrix, Number, check_rows
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.typing import FloatArray

Harmonics = Annotated[tuple[Number, ...], Field(strict=False, max_length=64)]


class UniformStart(Part):
    """All directions alike."""

    law: Literal["uniform"] = "uniform"


class FourierStart(Part):
    """Density (1 + sum_k a_k cos k theta + b_k sin k theta)/(2 pi) on the circle."""

    law: Literal["fourier"] = "fourier"
    cosine: Harmonics = Field(default=(), description="a_1, a_2, ... of the density, for instance [0.5]")
    sine: Harmonics = Field(default=(), description="b_1, b_2, ... of the density, for instance [0.0, 0.2]")

    @after_fields
    def _is_a_density(self) -> None:
        order = max(len(self.cosine), len(self.sine), 1)
        theta = np.linspace(-np.pi, np.pi, 64 * order + 1)  # 64 angles per period of the highest harmonic
        least = float(self.density(theta).min())
        if least < -1e-12:
            raise FieldError(
                "cosine",
                f"with sine gives a density of {least:.4g} at an angle; lower the coefficients until it is >= 0",
            )

    def density(self, theta: FloatArray) -> FloatArray:
        """Density at angles."""
        total = np.ones_like(theta)
        for parts, wave in ((self.cosine, np.cos), (self.sine, np.sin)):
            for k, part in enumerate(parts, 1):
                total += part * wave(k * theta)
        return total / (2.0 * np.pi)

    def distribution(self, theta: FloatArray) -> FloatArray:
        """Integral of the density from 0 to angles."""
        total = np.array(theta, dtype=float)
        for k, part in enumerate(self.cosine, 1):
            total += part * np.sin(k * theta) / k
        for k, part in enumerate(self.sine, 1):
            total += part * (1.0 - np.cos(k * theta)) / k
        return total / (2.0 * np.pi)


class RandomStart(Part):
    """Independent random directions."""

    law: Literal["random"] = "random"
    seed: int = Field(default=0, ge=0, lt=2**63, description="seed of the directions")


class FanInStart(Part):
    """Weights uniform in +-scale/sqrt(fan-in), as linear layers of PyTorch begin."""

    law: Literal["fan_in"] = "fan_in"
    scale: float = Field(default=1.0, gt=0, le=1e3, description="1 for the start of PyTorch, less for small weights")


class GivenStart(Part):
    """Weights one by one."""

    law: Literal["points"] = "points"
    values: Matrix = Field(
        description="one list of coordinates per filter, of any length greater than 0; of two layers place by place"
    )
    top: Matrix | None = Field(
        default=None, description="of two layers: one list per output, with a weight for each of these filters"
    )

    @after_fields
    def _rows_fit(self) -> None:
        check_rows("values", self.values, 2)
        if self.top is not None:
            check_rows("top", self.top, 1)
            if len(self.top[0]) != len(self.values):
                raise FieldError(
                    "top",
                    f"rows have {len(self.top[0])} number(s), but values has {len(self.values)} row(s); give as many",
                )
        empty = np.flatnonzero(~np.array(self.values, dtype=float).any(axis=1))
        if len(empty):
            raise FieldError("values", f"row {empty[0]} is 0, which is no direction; change it")


FilterStart = Annotated[UniformStart | FourierStart | RandomStart | FanInStart | GivenStart, Field(discriminator="law")]


class Filters(Part):
    """Number of filters, and their start."""

    count: int = Field(
        default=100,
        ge=1,
        le=10**7,
        description="K, the number of filters of particles and SGD; of two layers M, those of each place",
    )
    start: FilterStart = Field(default=UniformStart(), description="law of the initial filters, a table with law = ...")
