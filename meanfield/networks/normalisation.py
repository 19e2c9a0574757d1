"""Normalised outputs y = f/(|f| + epsilon) of a network, those of max(f, 0), and their derivatives; y(0) = 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Normalisation:
    """Output y of a network as a function of its last layer f.

    Parameters
    ----------
    active : bool
        Without it y = f.
    """

    active: bool
    epsilon: float = 0.0

    def value(self, f: FloatArray) -> FloatArray:
        """Outputs y; the last dim is that of the outputs."""
        return f * self.gain(f) if self.active else f

    def gain(self, f: FloatArray) -> FloatArray:
        """Factor 1/(|f| + epsilon) with which y = gain f, with a last dim of size 1; 0 where f = 0."""
        if not self.active:
            return np.ones((*f.shape[:-1], 1))
        length = _length(f)
        return np.divide(1.0, length + self.epsilon, out=np.zeros_like(length), where=length > 0.0)

    def back(self, f: FloatArray, slope: FloatArray) -> FloatArray:
        """Derivative by f of what has the derivative `slope` by y."""
        if not self.active:
            return slope
        length = _length(f)
        unit = np.divide(f, length, out=np.zeros_like(f), where=length > 0.0)
        gain = self.gain(f)
        along = (slope * unit).sum(axis=-1, keepdims=True) * unit
        return np.asarray(gain * (slope - gain * length * along))


def _length(f: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt((f * f).sum(axis=-1, keepdims=True)))


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
        return self.normalisation.gain(np.maximum(f, 0.0)) * (f > 0.0)

    def back(self, f: FloatArray, slope: FloatArray) -> FloatArray:
        """Derivative by f of what has the derivative `slope` by y."""
        return self.normalisation.back(np.maximum(f, 0.0), slope) * (f > 0.0)
