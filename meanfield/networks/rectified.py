"""Rectified outputs max(f, 0) of a network, or their direction, and their derivative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.networks.normalisation import Normalisation
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Rectified:
    """Output y of a network as a function of its last layer f; see `meanfield.networks.normalisation.Normalisation`.

    Parameters
    ----------
    normalisation : Normalisation
        Of max(f, 0).
    """

    normalisation: Normalisation

    def value(self, f: FloatArray) -> FloatArray:
        """Outputs y."""
        return self.normalisation.value(np.maximum(f, 0.0))

    def gain(self, f: FloatArray) -> FloatArray:
        """Factor of each output with which y = gain f."""
        return np.asarray(self.normalisation.gain(np.maximum(f, 0.0)) * (f > 0.0))

    def back(self, f: FloatArray, slope: FloatArray) -> FloatArray:
        """Derivative by f of what has the derivative `slope` by y."""
        return np.asarray(self.normalisation.back(np.maximum(f, 0.0), slope) * (f > 0.0))
