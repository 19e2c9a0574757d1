"""Rectified outputs y = max(f, 0) of a network, and their derivative, in place of normalised ones."""

from __future__ import annotations

import numpy as np

from meanfield.typing import FloatArray


class Rectified:
    """Output y of a network as a function of its last layer f; see `meanfield.networks.normalisation.Normalisation`."""

    def value(self, f: FloatArray) -> FloatArray:
        """Outputs y."""
        return np.asarray(np.maximum(f, 0.0))

    def back(self, f: FloatArray, slope: FloatArray) -> FloatArray:
        """Derivative by f of what has the derivative `slope` by y."""
        return np.asarray(slope * (f > 0.0))
