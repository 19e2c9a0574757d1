"""Rates of change against the mean step of SGD, sampled at fixed weights, for a mixture with means and scales."""

import numpy as np
from scipy.special import erf

from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import State, make_system, packed, unpacked
from meanfield.ingredients.spectra import Nodes
from tests.families.hidden_manifold.problems import problem

N, D, SAMPLES = 240, 120, 50_000
P, S = np.array([0.4, 0.6]), np.array([0.3, 1.6])
MEANS = np.array([[2.1, -0.9], [-1.4, 0.6]])
VT, V, ETA, ETA_V = np.array([1.0, 0.8]), np.array([0.9, 0.4]), 0.3, 0.2

GIVEN = problem(
    inputs={
        "components": [
            {"weight": p, "scale": s, "mean": mean, "mean_elsewhere": 1.0}
            for p, s, mean in zip(P.tolist(), S.tolist(), MEANS.tolist(), strict=True)
        ]
    },
    teacher={"output_weights": VT.tolist()},
    student={"output_weights": V.tolist()},
    training={"learning_rate": ETA, "output_learning_rate": ETA_V},
)


def vectors(rng):
    """Features, teachers, means of components, and students, as they are at finite N."""
    F = rng.standard_normal((D, N))
    F *= np.sqrt(D) / np.linalg.norm(F, axis=0)
    columns = np.sqrt(D) * np.linalg.qr(rng.standard_normal((D, 4)))[0].T
    teacher, means = columns[:2], MEANS @ columns[:2] + columns[2:]
    W = np.array([[0.5, 0.1], [-0.2, 0.6]]) @ teacher @ F / np.sqrt(N) + 0.5 * rng.standard_normal((2, N))
    return F, teacher, means, W


def sampled(rng, F, teacher, means, W):
    """Changes of S.columns/D, S.S/D, W.W/N and v per unit of time, and the mean of Delta^2/2."""
    q = (rng.random(SAMPLES) > P[0]).astype(int)
    C = means[q] / np.sqrt(D) + S[q, None] * rng.standard_normal((SAMPLES, D))
    x = np.sign(C @ F)
    h, nu = x @ W.T / np.sqrt(N), C @ teacher.T / np.sqrt(D)
    delta = erf(h / np.sqrt(2)) @ V - erf(nu / np.sqrt(2)) @ VT
    force = V * delta[:, None] * np.sqrt(2 / np.pi) * np.exp(-(h**2) / 2)
    dW = -ETA * np.sqrt(N) * force.T @ x / SAMPLES
    G, dG = W @ F.T / np.sqrt(N), dW @ F.T / np.sqrt(N)
    squares = ETA**2 * force.T @ force / SAMPLES
    xF = x[:2000] @ F.T / np.sqrt(N)
    spread = ETA**2 * np.einsum("ik,il,i->kl", force[:2000], force[:2000], (xF**2).sum(axis=1)) / 2000 / D
    r = dG @ np.vstack([teacher, means]).T / D
    sigma = dG @ G.T / D
    Omega = dW @ W.T / N
    dv = -ETA_V * np.mean(delta[:, None] * erf(h / np.sqrt(2)), axis=0)
    return r, sigma + sigma.T + spread, Omega + Omega.T + squares, dv, 0.5 * np.mean(delta**2)


def predicted(F, teacher, means, W):
    """The same, from the equations at the eigenvectors of the features."""
    rho, basis = np.linalg.eigh(F @ F.T / N)
    columns, G = np.vstack([teacher, means]) @ basis, W @ F.T / np.sqrt(N) @ basis
    nodes = Nodes(np.maximum(rho, 0.0), np.full(D, 1 / D), np.ones(D))
    system = make_system(GIVEN, nodes, 10)._replace(t=np.einsum("ad,bd->dab", columns, columns))
    state = State(np.einsum("kd,ad->dka", G, columns), np.einsum("kd,ld->dkl", G, G), W @ W.T / N, V)
    y = packed(state)
    change = np.empty_like(y)
    error = rates(y, system, change)
    found = unpacked(system, change)
    return found.r.mean(axis=0), found.sigma.mean(axis=0), found.Omega, found.v, error


def test_rates_are_those_of_the_mean_step():
    """At this seed differences are 0.007 and less, of finite N and of samples; a wrong power of a scale is 0.05."""
    rng = np.random.default_rng(3)
    made = vectors(rng)
    names = ("r", "sigma", "Omega", "v", "error")
    for name, one, other in zip(names, sampled(rng, *made), predicted(*made), strict=True):
        assert np.abs(one - other).max() < (0.01 if name == "r" else 0.004), name
