"""Nonlinearities f of inputs x = f(U), by name, and their moments under Gaussian laws.

Only averages of f enter a limit, never its derivative, so that f may jump where an activation may not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss

from meanfield.ingredients.activations import ACTIVATIONS, Activation, sign, step
from meanfield.ingredients.function_checks import check_function
from meanfield.ingredients.user_functions import Catalogue
from meanfield.numerics.compiled.scalar_functions import ScalarFunction, compile_scalar, evaluate
from meanfield.typing import FloatArray

LAST_U = 38.0
"""Largest |u| of averages over u ~ N(0, 1): the normal density is 1e-314 there, the least normal double."""

MOMENT_ACCURACY = 1e-11
"""Largest error of a moment relative to E[f^2], or to 1 if that is less."""

LARGEST_SQUARE = 1e12
"""Largest E[f^2]."""


@dataclass(frozen=True)
class Moments:
    """Moments of f(s u) for u ~ N(0, 1).

    Parameters
    ----------
    mean : float
        E[f(s u)].
    slope : float
        E[u f(s u)], which is s E[f'(s u)].
    square : float
        E[f(s u)^2].
    """

    mean: float
    slope: float
    square: float


@dataclass(frozen=True)
class Nonlinearity:
    """Function f, and the points where it or a derivative of it jumps."""

    value: ScalarFunction
    kinks: tuple[float, ...] = ()

    @property
    def address(self) -> int:
        """Address of the compiled f."""
        return compile_scalar(self.value)

    def moments(self, scale: float) -> Moments:
        """Moments of f(scale u), by adaptive quadrature between kinks.

        Raises
        ------
        ValueError
            If they are not finite, or not found to `MOMENT_ACCURACY`.
        """
        return _moments(self, scale)


@lru_cache(maxsize=256)
def _moments(f: Nonlinearity, scale: float) -> Moments:
    """Moments by Gauss-Legendre rules on panels, which are halved where two rules disagree, as about unknown jumps."""
    ends = sorted({*np.linspace(-LAST_U, LAST_U, 39), *(k / scale for k in f.kinks if abs(k) < scale * LAST_U)})
    panels = np.array([ends[:-1], ends[1:]])
    total, size = np.zeros(3), 1.0
    with np.errstate(all="ignore"):
        for _ in range(60):  # after 60 nothing is left of a panel about a jump, to rounding
            # Even and odd: rules of equal parity would agree about a jump in the middle of a panel.
            fine, coarse = (_integrals(f, scale, panels, order) for order in (20, 15))
            size = max(size, float(np.abs(fine[2]).sum()))
            rough = np.abs(fine - coarse).max(axis=0) > MOMENT_ACCURACY * size / len(ends)
            if not np.all(np.isfinite(fine)):
                break
            total += fine[:, ~rough].sum(axis=1)
            left, right = panels[:, rough]
            panels = np.array([[*left, *(0.5 * (left + right))], [*(0.5 * (left + right)), *right]])
            if not panels.size:
                break
        last = np.abs(evaluate(f.value, scale * np.array([-LAST_U, LAST_U])) ** 2 * _density(LAST_U)).max()
    if not np.all(np.isfinite(total)) or not last <= MOMENT_ACCURACY * size or not size < LARGEST_SQUARE:
        raise ValueError(
            f"E[f(s u)^2] at s = {scale:g} is not finite, or beyond {LARGEST_SQUARE:g}: f overflows; take one that "
            "grows like a power, with smaller values"
        )
    if panels.size:
        raise ValueError("its moments do not converge; take a function with finitely many jumps")
    return Moments(*map(float, total))


def _integrals(f: Nonlinearity, scale: float, panels: FloatArray, order: int) -> FloatArray:
    """Integrals of f, u f and f^2 with the normal density over each panel, shape (3, panels)."""
    x, weight = leggauss(order)
    half, middle = 0.5 * (panels[1] - panels[0]), 0.5 * (panels[1] + panels[0])
    u = middle[:, None] + half[:, None] * x
    value = evaluate(f.value, scale * u)
    measure = half[:, None] * weight * _density(u)
    return np.array([(g * measure).sum(axis=1) for g in (value, u * value, value * value)])


def _density(u: Any) -> Any:
    return np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)


NONLINEARITIES: dict[str, Nonlinearity] = {
    "sign": Nonlinearity(sign, (0.0,)),
    "step": Nonlinearity(step, (0.0,)),
} | {
    name: Nonlinearity(found.value, found.kinks) for name, found in ACTIVATIONS.items() if isinstance(found, Activation)
}


def _nonlinearity(own: Any) -> Nonlinearity:
    return Nonlinearity(own.value, own.kinks) if isinstance(own, Activation) else Nonlinearity(own)


def _check(own: Nonlinearity, name: str) -> Nonlinearity:
    check_function(own.value, f"'{name}'")
    moments = own.moments(1.0)
    if moments.square - moments.mean**2 <= MOMENT_ACCURACY * moments.square:
        raise ValueError(f"'{name}' is constant, so that inputs carry nothing; take another function")
    return own


make_nonlinearity = Catalogue(NONLINEARITIES, _nonlinearity, _check)
"""Nonlinearity that a problem file names; a user's function may be given as a `meanfield.Activation`, too."""
