"""Filters at Gaussian inputs: mean activations given the latent variable, and covariances of filters of a place.

With u = w.x of mean m and deviation s, X = (u - m)/s, v = S w/s, and the correlation rho of two filters k, l

    E[h'_k x] = E h'_k mu + E[X_k h'_k] v_k,
    E[h'_k x h_l] = E[h'_k h_l] mu + (E[X_k h'_k h_l] - rho s_l E[h'_k h'_l]) v_k + s_l E[h'_k h'_l] v_l.

For h(z) = a z + b max(z, 0) all of these are closed, by the bivariate normal distribution; smooth activations are
expanded in Hermite polynomials of X, of which those of different filters have the covariance rho^n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, owens_t

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.typing import FloatArray

NODES = np.polynomial.hermite_e.hermegauss(80)
"""Nodes and weights for smooth activations of Gaussian inputs."""

TERMS = 60
"""Number of Hermite polynomials that smooth activations are expanded in."""


@dataclass(frozen=True)
class Projections:
    """Gaussians along filters, given the latent variable.

    Parameters
    ----------
    mean, deviation : ndarray, shape (places, conditions, filters)
        m and s.
    slope : ndarray, shape (places, conditions, filters, coordinates)
        v.
    unit : ndarray, shape (places, conditions, filters, coordinates)
        Vectors of length 1 whose products are the correlations rho.
    """

    mean: FloatArray
    deviation: FloatArray
    slope: FloatArray
    unit: FloatArray


@dataclass(frozen=True)
class SecondMoments:
    """Averages over pairs of filters of a place, each of shape (places, conditions, filters, filters).

    Parameters
    ----------
    outputs : ndarray
        E[h_k h_l].
    gate, tilted, gates : ndarray
        E[h'_k h_l], E[X_k h'_k h_l] and s_l E[h'_k h'_l].
    correlation : ndarray
        rho.
    """

    outputs: FloatArray
    gate: FloatArray
    tilted: FloatArray
    gates: FloatArray
    correlation: FloatArray


class GaussianInputs:
    """Gaussians, each of which stands for one atom with its mean activation.

    Parameters
    ----------
    means : ndarray, shape (places, conditions, coordinates)
    covariances : ndarray, shape (places, conditions, coordinates, coordinates)
    """

    def __init__(self, means: FloatArray, covariances: FloatArray) -> None:
        self._means, self._covariances = means, covariances
        self._roots = np.linalg.cholesky(covariances)

    def along(self, filters: FloatArray) -> Projections:
        """Gaussians along filters, shape (places, filters, coordinates)."""
        rows = filters[:, None] @ self._roots
        s = np.sqrt(np.sum(rows * rows, axis=-1))
        v = filters[:, None] @ self._covariances
        m = self._means @ np.swapaxes(filters, 1, 2)
        return Projections(m, s, v / s[..., None], rows / s[..., None])

    def forward(self, h: Filter, filters: FloatArray) -> tuple[FloatArray, Any]:
        """See `Inputs.forward`."""
        of = self.along(filters)
        m, s = of.mean, of.deviation
        if h.straight is not None:
            a, b = h.straight
            t = m / s
            Phi, phi = ndtr(t), _bell(t)
            value, slope, along = a * m + b * (m * Phi + s * phi), a + b * Phi, b * phi
        else:
            x, weight = NODES[0], NODES[1] / NODES[1].sum()
            u = m[..., None] + s[..., None] * x
            gated = h.slope(u) * weight
            value, slope, along = h.value(u) @ weight, gated.sum(axis=-1), gated @ x
        return value, (slope, along, of.slope)

    def back(self, kept: Any, slope: FloatArray) -> FloatArray:
        """See `Inputs.back`."""
        on_mean, along, v = kept
        return np.asarray(
            np.swapaxes(slope * on_mean, 1, 2) @ self._means + np.einsum("kzm,kzmd->kmd", slope * along, v)
        )

    def pairs(self, h: Filter, filters: FloatArray) -> tuple[SecondMoments, FloatArray]:
        """Averages over pairs of filters, and v of the filters."""
        of = self.along(filters)
        return (_closed(of, *h.straight) if h.straight is not None else _expanded(of, h)), of.slope

    def by_pairs(self, found: tuple[SecondMoments, FloatArray], weight: FloatArray) -> FloatArray:
        """Sum over the second filter and conditions of weights times E[h'_k x h_l], shape as filters.

        Parameters
        ----------
        weight : ndarray, shape (places, conditions, filters, filters)
        """
        of, v = found
        across = weight * of.gates
        own = np.sum(weight * of.tilted - across * of.correlation, axis=-1)
        on_mean = np.swapaxes(np.sum(weight * of.gate, axis=-1), 1, 2) @ self._means
        return np.asarray(on_mean + np.einsum("kzm,kzmd->kmd", own, v) + np.einsum("kzml,kzld->kmd", across, v))

    def rough(self, h: Filter) -> float:
        """Largest share of E h^2 that is not expanded, for filters of length 1 along the broadest direction."""
        if h.straight is not None:
            return 0.0
        values, vectors = np.linalg.eigh(self._covariances)
        s, m = np.sqrt(values[..., -1]), np.sum(self._means * vectors[..., -1], axis=-1)
        x, weight = NODES
        outputs = h.value(m[..., None] + s[..., None] * x)
        whole = outputs**2 @ weight / weight.sum()
        return float(np.max(1.0 - np.sum((outputs @ _HERMITE) ** 2, axis=-1) / np.maximum(whole, 1e-300)))


def check_gaussians(problem: Problem, inputs: GaussianInputs, other: str) -> None:
    """Refuse problems that need more of Gaussians than means and covariances of filters, or that are too rough.

    Parameters
    ----------
    other : str
        Last remedy of messages.

    Raises
    ------
    InputError
    """
    for key, fault in (
        ("model.batch_norm", problem.model.batch_norm.active),
        ("importance.kind = 'gaussian'", problem.importance.kind == "gaussian"),
    ):
        if fault:
            raise InputError(
                f"{key} has no exact averages over the Gaussians of data.means; change it, take points, {other}"
            )
    missing = inputs.rough(Filter(problem.model.activation_functions))
    if missing > 1e-8:  # of variances; energies have the error, too
        raise InputError(
            f"model.activation = '{problem.model.activation}' varies within a deviation of the Gaussians so much that "
            f"its expansion misses {missing:.1g} of a variance; lower data.covariance, take 'relu', {other}"
        )


def _hermite() -> FloatArray:
    """Weights of the nodes in coefficients of He_n/sqrt(n!), shape (nodes, terms)."""
    x, weight = NODES[0], NODES[1] / NODES[1].sum()
    table = [np.ones_like(x), x]
    for n in range(2, TERMS):
        table.append((x * table[-1] - np.sqrt(n - 1.0) * table[-2]) / np.sqrt(n))
    return np.asarray(np.array(table).T * weight[:, None])


_HERMITE = _hermite()


def _bell(t: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi))


def _expanded(of: Projections, h: Filter) -> SecondMoments:
    """Averages of smooth activations."""
    x = NODES[0]
    u = of.mean[..., None] + of.deviation[..., None] * x
    slope = h.slope(u)
    value, gate, tilted = (part @ _HERMITE for part in (h.value(u), slope, x * slope))
    rho = of.unit @ np.swapaxes(of.unit, -1, -2)

    def mean(first: FloatArray, second: FloatArray) -> FloatArray:
        total = np.zeros_like(rho)
        for n in reversed(range(TERMS)):
            total = total * rho + first[..., :, None, n] * second[..., None, :, n]
        return total

    gates = of.deviation[..., None, :] * mean(gate, gate)
    return SecondMoments(mean(value, value), mean(gate, value), mean(tilted, value), gates, rho)


def _closed(of: Projections, a: float, b: float) -> SecondMoments:
    """Averages of h(z) = a z + b max(z, 0), from those over the quadrant in which both filters are active."""
    y, t = of.unit, of.mean / of.deviation
    apart, along = (np.sum((y[..., :, None, :] - sign * y[..., None, :, :]) ** 2, axis=-1) for sign in (1.0, -1.0))
    rho = 0.5 * np.where(apart < along, 2.0 - apart, along - 2.0)  # to rounding of 1 - |rho|, too
    r = 0.5 * np.sqrt(apart * along)
    tk, tl = t[..., :, None], t[..., None, :]
    # t_l - rho t_k and its mirror image, where filters are almost parallel.
    ahead = np.where(apart < along, (tl - tk) + 0.5 * apart * tk, (tl + tk) - 0.5 * along * tk)
    floor = np.maximum(r, 1e-150)
    A = ndtr(ahead / floor)
    both = _quadrant(tk, tl, ahead, np.swapaxes(ahead, -1, -2), floor)
    s, m = of.deviation[..., None, :], of.mean[..., None, :]
    Phi, phi = ndtr(t), _bell(t)
    Phi_k, phi_k, Phi_l, phi_l = Phi[..., :, None], phi[..., :, None], Phi[..., None, :], phi[..., None, :]
    edge = phi_k * A
    other = np.swapaxes(edge, -1, -2)
    first, second = edge + rho * other, other + rho * edge  # E[X_k; both active] and E[X_l; both active]
    bell = r * np.exp(-0.5 * (tk * tk + (ahead / floor) ** 2)) / (2.0 * np.pi)
    product = rho * (both - tk * edge - tl * other) + bell
    gate = a * a * m + a * b * (m * (Phi_l + Phi_k) + s * (phi_l + rho * phi_k)) + b * b * (m * both + s * second)
    tilted = a * a * s * rho + a * b * (s * rho * Phi_l + m * phi_k + s * rho * (Phi_k - tk * phi_k))
    tilted = tilted + b * b * (m * first + s * product)
    gates = s * (a * a + a * b * (Phi_k + Phi_l) + b * b * both)
    outputs = of.mean[..., :, None] * gate + of.deviation[..., :, None] * tilted  # h = h' u
    return SecondMoments(outputs, gate, tilted, gates, rho)


def _quadrant(t: FloatArray, u: FloatArray, ahead: FloatArray, back: FloatArray, r: FloatArray) -> FloatArray:
    """P(X > -t, Y > -u) of two normal numbers, by Owen's function T.

    Parameters
    ----------
    ahead, back : ndarray
        u - rho t and t - rho u.
    r : ndarray
        sqrt(1 - rho^2), not 0.
    """
    t, u = (np.where(np.abs(x) < 1e-150, 1e-150, x) for x in (t, u))
    with np.errstate(over="ignore"):
        owen = owens_t(t, ahead / t / r) + owens_t(u, back / u / r)
    return np.asarray(0.5 * (ndtr(t) + ndtr(u)) - owen - 0.5 * (t * u < 0.0))
