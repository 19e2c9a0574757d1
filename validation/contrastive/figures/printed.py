"""Drifts h(Q) = (dQ/dt)/tau of one feature as the paper prints them, where it prints them wrong (docs/errata.md).

For sigma(x) = x^2 and the moments of the three-point law of `one_feature.problem_with`; those with noise for m2 = 1.
"""

from __future__ import annotations

import numpy as np

from validation.contrastive.figures.one_feature import BATCH_SIZE, LEARNING_RATE, NON_ZERO

STEP = LEARNING_RATE / BATCH_SIZE


def equation_12(Q: np.ndarray, m2: float) -> np.ndarray:
    """Equation (12), which lacks a factor 1 - 2Q of m2 - 1."""
    m4, m6 = m2**2 / NON_ZERO, m2**3 / NON_ZERO**2
    gain = 8 * (1 - Q) * (Q**2 * (m4 - 3) + 3 * Q * (m2 - 1))
    spread = Q**3 * (m6 - 15) + 15 * Q**2 * (1 - Q) * (m4 - 3) + 45 * Q * (1 - Q) ** 2 * (m2 - 1) + 15
    return gain - 16 * STEP * Q * spread


def equation_s62(Q: np.ndarray, eta: float) -> np.ndarray:
    """Equation (S-62), for independent views."""
    sixth, fourth = _without_constant(Q), _fourth(Q)
    rest = (7 * eta**2 + 14 * eta) * fourth + 3 * eta**4 + 12 * eta**3 + 18 * eta**2
    return _half_gain(Q) - 4 * STEP * Q * ((2 + eta) * sixth + rest)


def equation_s65(Q: np.ndarray, eta: float) -> np.ndarray:
    """Equation (S-65), for opposite views."""
    sixth, fourth = _without_constant(Q), _fourth(Q)
    rest = (8 * eta**2 - 16 * eta) * fourth + 30 * eta**4 - 12 * eta**3 + 6 * eta**2
    return _half_gain(Q) - 4 * STEP * Q * (2 * sixth + rest)


def loss_s55(Q: np.ndarray, eta: float | np.ndarray, step: float = STEP) -> np.ndarray:
    """Claim 3, (S-55): what independent noise takes from h; `step` is tau/m."""
    rest = (7 * eta**2 + 14 * eta) * _fourth(Q) + 3 * eta**4 + 12 * eta**3 + 18 * eta**2
    return 4 * step * Q * (eta * _without_constant(Q) + rest)


def gain_s56(Q: np.ndarray, eta: float | np.ndarray) -> np.ndarray:
    """Claim 4, (S-56): what opposite noise gives to h, at first order."""
    return 64 * STEP * Q * _fourth(Q) * eta


def _half_gain(Q: np.ndarray) -> np.ndarray:
    return 4 * (1 - Q) * Q**2 * (1 / NON_ZERO - 3)


def _fourth(Q: np.ndarray) -> np.ndarray:
    """Fourth moment of Theta."""
    return Q**2 * (1 / NON_ZERO - 3) + 3


def _without_constant(Q: np.ndarray) -> np.ndarray:
    """Formula that the paper derives from its sixth moment, whose constant 15 is lost."""
    return Q**3 * (1 / NON_ZERO**2 - 15) + 15 * Q**2 * (1 - Q) * (1 / NON_ZERO - 3)
