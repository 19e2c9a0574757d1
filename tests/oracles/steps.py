"""Mean and covariance of a step of q, N times, by two evaluations that share no quadrature with the package.

`by_hermite` draws every Gaussian number of a sample, noise along the features included, from tensor Gauss-Hermite
rules: exact for polynomial activations. `by_panels` averages over c, e and (zeta1, zeta2) with Gauss-Legendre panels
that end at the kinks of whatever runs, and takes what is left of the noise along the features from its covariance.
"""

from __future__ import annotations

import itertools

import numpy as np

from tests.oracles.activations import sigma
from tests.oracles.plain_steps import noise_covariance

PANELS = np.array([-9.3, -6.0, -3.0, 0.0, 3.0, 6.0, 9.3])
LEGENDRE = np.polynomial.legendre.leggauss(16)


def moments(problem, q, alpha, beta, A, left, weight):
    """N times mean and covariance of a step from samples; `left` is the factor of I - q q^T in E[A A^T]."""
    q, tau, m, v = np.asarray(q), problem.model.learning_rate, problem.model.batch_size, noise_covariance(problem)
    length = alpha**2 * (1 + v[0, 0]) + beta**2 * (1 + v[1, 1]) + 2 * alpha * beta * (1 + v[0, 1])
    Y = tau * A - tau**2 / (2 * m) * q[:, None] * length
    mean = Y @ weight
    square = (Y * weight) @ Y.T + tau**2 * (left @ weight) * (np.eye(q.size) - np.outer(q, q))
    return mean, (square - np.outer(mean, mean)) / m


def by_hermite(problem, q, nodes):
    """For hidden variables with values or Gaussian ones, and polynomial activations."""
    q = np.asarray(q, dtype=float)
    d1, s, v = q.size, np.sqrt(1 - q @ q), noise_covariance(problem)
    variances, directions = np.linalg.eigh(v)
    root = (np.sqrt(np.maximum(variances, 0)) * directions)[:, variances > 1e-12]
    kinds = root.shape[1]
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    laws = []
    for feature in problem.features:
        table = feature.hidden.model_dump()
        if table["law"] == "gaussian":
            laws.append((np.sqrt(table["second_moment"]) * x, w))
        else:
            probability, values, _ = feature.hidden.components(12)
            laws.append((values[:, 0], probability))
    gaussians = 1 + kinds * (d1 + 1)  # e; noise along every feature and along the rest of w
    grids = np.meshgrid(*(values for values, _ in laws), *[x] * gaussians, indexing="ij")
    weights = np.meshgrid(*(chance for _, chance in laws), *[w] * gaussians, indexing="ij")
    numbers, weight = np.array([g.ravel() for g in grids]), np.prod([g.ravel() for g in weights], axis=0)
    c, e, n = numbers[:d1], numbers[d1], numbers[d1 + 1 :].reshape(kinds, d1 + 1, weight.size)
    eta = np.einsum("lk,kfn->lfn", root, n)
    z = q @ c + s * e + np.einsum("f,lfn->ln", np.append(q, s), eta)
    function = sigma(problem.model.activation)
    value, slope = function.value(z), function.slope(z)
    mean = value @ weight if problem.model.centering == "population" else np.zeros(2)
    alpha, beta = (value[1] - mean[1]) * slope[0], (value[0] - mean[0]) * slope[1]
    A = (alpha + beta) * c + alpha * eta[0, :d1] + beta * eta[1, :d1] - q[:, None] * (alpha * z[0] + beta * z[1])
    return moments(problem, q, alpha, beta, A, np.zeros(weight.size), weight)


def normal_rule(points):
    """Nodes and weights for N(0, 1), panels ending at the points, shape (n, p): both of shape (n, nodes)."""
    points = np.asarray(points, dtype=float)
    edges = np.concatenate([np.broadcast_to(PANELS, (len(points), PANELS.size)), np.clip(points, -9.3, 9.3)], axis=1)
    edges.sort(axis=1)
    centre, half = 0.5 * (edges[:, 1:] + edges[:, :-1]), 0.5 * np.diff(edges, axis=1)
    x = (centre[..., None] + half[..., None] * LEGENDRE[0]).reshape(len(points), -1)
    w = (half[..., None] * LEGENDRE[1]).reshape(len(points), -1)
    return x, w * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def by_panels(problem, q, hidden):
    """For any activation and any noise.

    Parameters
    ----------
    hidden : tuple of ndarray
        Nodes of c, shape (nodes, d1), and their weights.
    """
    q = np.asarray(q, dtype=float)
    s, v = np.sqrt(1 - q @ q), noise_covariance(problem)
    function = sigma(problem.model.activation)
    kinks = np.array([*function.kinks])
    first = np.sqrt(v[0, 0])
    slope = v[0, 1] / v[0, 0] if first else 0.0
    rest = np.sqrt(max(v[1, 1] - slope * v[0, 1], 0.0))
    rest = rest if rest > 1e-7 else 0.0
    meet = np.array([(j - slope * k) / (1 - slope) for j, k in itertools.product(kinks, kinks)])  # both views at kinks
    c, chance = hidden
    e, of_e = normal_rule((meet - (c @ q)[:, None]) / s)
    B, weight = ((c @ q)[:, None] + s * e).ravel(), (chance[:, None] * of_e).ravel()
    c = np.repeat(c, e.shape[1], axis=0)

    def spread(deviation, points, *arrays):
        """A further normal variable: all arrays repeated along it, its values and its weights."""
        x, w = normal_rule(points / deviation) if deviation else (np.zeros((len(points), 1)), np.ones((len(points), 1)))
        return *(np.repeat(a, x.shape[1], axis=0) for a in arrays), deviation * x.ravel(), w.ravel()

    at_first = kinks[None, :] - B[:, None]
    if slope and not rest:
        at_first = np.concatenate([at_first, (kinks - B[:, None]) / slope], axis=1)
    B, c, weight, zeta1, w = spread(first, at_first, B, c, weight)
    weight = weight * w
    centre = B + slope * zeta1
    B, c, weight, zeta1, centre, x, w = spread(rest, kinks - centre[:, None], B, c, weight, zeta1, centre)
    z, weight = np.array([B + zeta1, centre + x]), weight * w
    value, derivative = function.value(z), function.slope(z)
    mean = value @ weight if problem.model.centering == "population" else np.zeros(2)
    alpha, beta = (value[1] - mean[1]) * derivative[0], (value[0] - mean[0]) * derivative[1]
    left = alpha**2 * v[0, 0] + 2 * alpha * beta * v[0, 1] + beta**2 * v[1, 1]
    return moments(problem, q, alpha, beta, (alpha + beta) * (c.T - np.outer(q, B)), left, weight)


def hidden_rule(problem):
    """Nodes and weights of the hidden variables, from their densities or values."""
    rules = []
    for feature in problem.features:
        law, m2 = feature.hidden, feature.hidden.model_dump().get("second_moment", 1.0)
        if law.law == "gaussian":
            x, w = normal_rule(np.empty((1, 0)))
            rules.append((np.sqrt(m2) * x[0], w[0]))
        elif law.law == "uniform":
            rules.append((np.sqrt(3 * m2) * LEGENDRE[0], LEGENDRE[1] / 2))
        elif law.law == "laplace":
            edges = np.array([0.0, 2.0, 6.0, 14.0, 26.0, 45.0])
            x = (edges[:-1, None] + 0.5 * np.diff(edges)[:, None] * (1 + LEGENDRE[0])).ravel()
            w = (0.25 * np.diff(edges)[:, None] * LEGENDRE[1]).ravel() * np.exp(-x)
            rules.append((np.sqrt(m2 / 2) * np.append(-x[::-1], x), np.append(w[::-1], w)))
        else:
            probability, values, variance = law.components(0.0)
            assert not variance.any()
            rules.append((values[:, 0], probability))
    c = np.array(list(itertools.product(*(values for values, _ in rules))))
    return c, np.array([np.prod(w) for w in itertools.product(*(w for _, w in rules))])
