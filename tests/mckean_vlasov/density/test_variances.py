"""Limits whose noise has variances that differ, against the Gaussian laws of weights under a linear drift."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ndtr

from meanfield.errors import InputError
from meanfield.ingredients.laws import GaussianCoordinate, GaussianResidual
from meanfield.ingredients.laws.coordinate import ThreePointCoordinate
from meanfield.ingredients.priors import PriorSettings
from meanfield.ingredients.spectra import Atoms, MarchenkoPastur
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.solver import solve
from meanfield.mckean_vlasov.limit import Limit

RATE, NOISE, START, STRENGTH = 0.6, 0.16, (0.1, 0.5), 0.2
THREE_POINT = ThreePointCoordinate(fourth_moment=5.0)
SCHEMES = ("lagrangian", "eulerian")


def regression(kept, spectrum, coordinate=THREE_POINT):
    """Limit of least squares, on data whose noise has a spectrum, under an l2 prior."""

    def closure(q, norm=START[1]):
        diffusion = RATE**2 * (spectrum_mean(spectrum) - 2.0 * q[1] + q[2] + NOISE)
        pulls = np.array([0.0, -RATE, RATE])
        return (pulls, diffusion) if kept else (pulls, diffusion, 0.0)

    prior, times = PriorSettings(name="l2", strength=STRENGTH), np.linspace(0.0, 2.0, 3)
    return Limit(
        closure, 1.0, prior, (coordinate,), np.array([START[0]]), GaussianResidual(), times, initial_norm=START[1],
        free_norm=not kept, spectrum=spectrum,
    )  # fmt: skip


def spectrum_mean(spectrum):
    nodes = spectrum.nodes(4)
    return float(nodes.weight @ nodes.rho)


def exact(kept, rho, share):
    """R and Q at each variance at t = 2."""

    def rates(_, y):
        R, Q = np.split(y, 2)
        diffusion = RATE**2 * ((share * rho) @ (1.0 - 2.0 * R + Q) + NOISE)
        of_Q = 2.0 * rho * RATE * (R - Q) - 2.0 * STRENGTH * Q + rho * diffusion
        back = 0.5 * (share @ of_Q) / (share @ Q) if kept else 0.0
        return np.concatenate([rho * RATE * (1.0 - R) - (STRENGTH + back) * R, of_Q - 2.0 * back * Q])

    start = np.repeat(START, len(rho))
    return np.split(solve_ivp(rates, (0.0, 2.0), start, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1], 2)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kept", [False, True])
def test_laws_at_each_variance_are_gaussian(scheme, kept):
    """Three variances; points follow weights that noise does not reach, which cells are too wide for."""
    least = 0.0 if scheme == "lagrangian" else 0.2
    spectrum = Atoms(eigenvalues=(least, 0.5, 2.3), weights=(0.1, 0.6, 0.3), law="atoms")
    limit = regression(kept, spectrum)
    solution = solve(limit, DensitySettings(scheme=scheme, tolerance=1e-6))
    assert solution.status == "complete"
    found = {name: values[-1] for name, values in solution.arrays(limit).items() if len(values) == 3}
    rho, share = np.array(spectrum.eigenvalues), np.array(spectrum.weights)
    R, Q = exact(kept, rho, share)
    for name, known in (("q", share @ R), ("q_noise", (share * rho) @ R), ("norm_noise", (share * rho) @ Q)):
        assert np.abs(found[name] - known) <= found[f"{name}_error"]
    if not kept:
        assert abs(found["norm"] - share @ Q) <= found["norm_error"]
    # Moments of cells, whose width is 0.06, or less where laws are narrow.
    np.testing.assert_allclose(found["q_rho"][:, 0], R, rtol=0, atol=2e-6)
    np.testing.assert_allclose(found["norm_rho"], Q, rtol=0, atol=1e-5)
    u, at = solution.grid.u.T[0], np.searchsorted(rho, solution.grid.u.T[1])
    law = np.diff(ndtr((solution.grid.edges - (R[at] * u)[:, None]) / np.sqrt(Q - R * R)[at][:, None]))
    distance = np.abs(found["P"] * np.diff(solution.grid.edges) - law).sum(axis=1) @ solution.grid.u_weight
    assert distance <= found["P_error"]


def test_nodes_of_a_continuous_spectrum_are_as_many_as_it_takes():
    """Gauss nodes in the variance are part of the search for nodes in u, and of the errors."""
    limit = regression(False, MarchenkoPastur(law="marchenko_pastur", aspect_ratio=0.7), GaussianCoordinate())
    solution = solve(limit, DensitySettings(tolerance=1e-6))
    found, nodes = solution.arrays(limit), limit.spectrum.nodes(24)
    R, Q = exact(False, nodes.rho, nodes.weight)
    for name, known in (("q", nodes.weight @ R), ("norm_noise", (nodes.weight * nodes.rho) @ Q)):
        assert np.all(np.abs(found[name][-1] - known) <= found[f"{name}_error"][-1])


def test_other_steps_know_one_variance():
    limit = regression(False, Atoms(eigenvalues=(0.5, 1.5), law="atoms"))
    with pytest.raises(InputError, match="take 'numba'"):
        solve(limit, backend="fipy")
