"""Values and derivatives of an activation at many points, and what its kinks allow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.ingredients.activations import Activation
from meanfield.typing import FloatArray

ROUNDING_OF_KINKS = 1e-7
"""Width over which a kink at 0 is rounded where filters may come to rest on it: they slide along it by themselves."""

PROBES = np.array([-3.0, -1.7, -0.4, 0.6, 1.1, 2.9])
"""Points at which pieces are seen to be straight."""


@dataclass(frozen=True)
class Filter:
    """The activation h of a filter."""

    functions: Activation

    @property
    def kinks(self) -> tuple[float, ...]:
        """Points where h' may jump."""
        return self.functions.kinks

    def value(self, z: FloatArray) -> FloatArray:
        """H."""
        return self.functions.values(z)

    def slope(self, z: FloatArray) -> FloatArray:
        """H'."""
        return self.functions.slopes(z)

    def curvature(self, z: FloatArray) -> FloatArray:
        """H'' away from kinks, by differences of h' of fourth order that stay on one side of them."""
        if self.straight is not None:
            return np.zeros_like(z)
        away = np.min([np.abs(z - kink) for kink in self.kinks], axis=0) if self.kinks else np.inf
        # Differences of h' are off by step^4/30 times its fourth derivative.
        step = np.minimum(2e-3, 0.45 * np.maximum(away, 1e-9))
        near = self.slope(z + step) - self.slope(z - step)
        far = self.slope(z + 2.0 * step) - self.slope(z - 2.0 * step)
        return np.asarray((8.0 * near - far) / (12.0 * step))

    @cached_property
    def straight(self) -> tuple[float, float] | None:
        """Numbers a, b of h(z) = a z + b max(z, 0), which is straight but for a kink at 0; None for others."""
        if any(kink != 0.0 for kink in self.kinks):
            return None
        slope = self.slope(PROBES)
        below, above = float(slope[0]), float(slope[-1])
        if not np.array_equal(slope, np.where(PROBES > 0, above, below)):
            return None
        expected = np.where(PROBES > 0, above, below) * PROBES
        return (below, above - below) if np.allclose(self.value(PROBES), expected, 1e-14, 0.0) else None


@dataclass(frozen=True)
class Rounded(Filter):
    """Activation a z + b max(z, 0) whose kink is rounded, b (z + sqrt(z^2 + width^2))/2."""

    def value(self, z: FloatArray) -> FloatArray:
        """H."""
        a, b = self.straight or (0.0, 0.0)
        return np.asarray(a * z + 0.5 * b * (z + np.hypot(z, ROUNDING_OF_KINKS)))

    def slope(self, z: FloatArray) -> FloatArray:
        """H'."""
        a, b = self.straight or (0.0, 0.0)
        return np.asarray(a + 0.5 * b * (1.0 + z / np.hypot(z, ROUNDING_OF_KINKS)))

    @cached_property
    def straight(self) -> tuple[float, float] | None:
        """Numbers a, b of the activation that is rounded."""
        return Filter(self.functions).straight
