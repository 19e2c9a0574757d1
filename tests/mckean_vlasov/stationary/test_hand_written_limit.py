"""Stationary states of limits that are written by hand, whose answers are known; nothing of any family takes part.

With g = -a q and Lambda = c (1 + |q|^2) the overlaps of a linear prior obey dq/dt = q (a - a q^2 - c (1 + q^2)/2) along
one axis, so that q^2 = (a - c/2)/(a + c/2) at rest, and W given u is N(u q, 1 - q^2).
"""

import subprocess
import sys

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import fsolve
from scipy.special import ndtr

from meanfield.extend import Limit, PriorSettings
from meanfield.ingredients.laws import GaussianCoordinate, GaussianResidual
from meanfield.ingredients.laws.coordinate import RademacherCoordinate, UniformCoordinate
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.mckean_vlasov.stationary import (
    StationaryBranches,
    all_states,
    density_arrays,
    without_states,
)
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.numerics.continuation import all_branches

GAINS = (0.5, 0.4, 0.3)
NOISE = 0.2
TAU = 0.1

SOLVED = 1e-9
"""Roots are solved to 1e-12 in F, and g and Lambda are differentiated by differences good to nine digits."""


def limit_with(laws, prior=None, gains=GAINS, noise=NOISE):
    gain = np.array(gains[: len(laws)])
    return Limit(
        closure=lambda q: (-gain * q, noise * (1.0 + float(q @ q))),
        learning_rate=TAU,
        prior=prior or PriorSettings(),
        coordinates=laws,
        initial_overlap=np.zeros(len(laws)),
        initial_residual=GaussianResidual(),
        times=np.array([0.0, 1.0]),
    )


def recovered(gain, noise=NOISE):
    return np.sqrt((gain - noise / 2) / (gain + noise / 2))


LAWS = {
    "Gaussian": (GaussianCoordinate(),),
    "atoms": (RademacherCoordinate(),),
    "uniform": (UniformCoordinate(),),
    "two of one law": (GaussianCoordinate(), GaussianCoordinate()),
    "two of different laws": (GaussianCoordinate(), RademacherCoordinate()),
}


@pytest.mark.parametrize("strength", [0.0, 0.7])
@pytest.mark.parametrize("laws", LAWS.values(), ids=LAWS)
def test_linear_priors_have_the_states_of_the_closed_form(laws, strength):
    """All of them: q = 0, and two along each axis, since gains differ. An l2 prior moves the multiplier alone."""
    equations, states = all_states(limit_with(laws, PriorSettings(name="l2", strength=strength)))
    found = np.array([state.q for state in states])
    axes = [sign * recovered(gain) * e for gain, e in zip(GAINS, np.eye(len(laws)), strict=False) for sign in (-1, 1)]
    expected = np.array([np.zeros(len(laws)), *axes])
    assert len(found) == len(expected)
    for q in expected:
        nearest = int(np.argmin(np.linalg.norm(found - q, axis=1)))
        assert found[nearest] == pytest.approx(q, abs=SOLVED)  # nine digits of the differences, see SOLVED
        multiplier = -np.array(GAINS[: len(laws)]) @ q**2 + TAU * strength - 0.5 * NOISE * (1 + q @ q)
        assert states[nearest].G + equations.shift == pytest.approx(
            multiplier, abs=SOLVED
        )  # nine digits of the differences, see SOLVED


def test_rates_are_those_of_the_closed_form():
    """d(dq/dt)/dq is a - c/2 at q = 0, and -2 (a - c/2) at the other states."""
    _, states = all_states(limit_with((GaussianCoordinate(),)))
    rows = [state.variables for state in states]
    growth = GAINS[0] - NOISE / 2
    assert [int(row["stability"]) for row in rows] == [1, -1, 1]
    for row, rate, gap in zip(rows, (-2 * growth, growth, -2 * growth), (GAINS[0], NOISE / 2, GAINS[0]), strict=True):
        assert np.nanmin(np.abs(row["eigenvalue_real"] - rate)) < 1e-8  # differences of g and Lambda: nine digits
        assert row["relaxation_rate"] == pytest.approx(gap, rel=1e-8)  # Ornstein-Uhlenbeck, from integrals
        assert row["multiplier_residual"] == pytest.approx(0, abs=SOLVED)  # nine digits of the differences, see SOLVED
        assert row["quadrature_error"] < 1e-10  # what nodes are chosen for
    assert set(rows[0]) == set(without_states(1))
    assert {name: array.shape[1:] for name, array in without_states(1).items()} == {
        name: np.shape(value) for name, value in rows[0].items()
    }


def test_densities_are_gaussian():
    equations, states = all_states(limit_with((RademacherCoordinate(),)))
    u, weight = RademacherCoordinate().quadrature(2)
    arrays = density_arrays(equations, states, u[:, None], weight)
    q = recovered(GAINS[0])
    for sign, density in zip((-1, 0, 1), arrays["P"], strict=True):
        for node, P in zip(u, density, strict=True):
            z = (edges_of(arrays) - sign * q * node) / np.sqrt(1 - (sign * q) ** 2)
            expected = np.diff(ndtr(z)) / np.diff(edges_of(arrays))
            assert pytest.approx(expected, abs=1e-8) == P  # averages over cells of a density of a state good to 1e-9


@pytest.mark.parametrize("name", ["l1", "quartic"])
def test_other_priors_solve_the_two_equations_by_adaptive_quadrature(name):
    """E[u w] = q and E[w^2] = 1 in (q, G) for u = +-1, by an integrator and a root finder that are not ours."""
    strength, potential = 0.5, {"l1": abs, "quartic": lambda w: w**4 / 4}[name]
    prior = PriorSettings(name=name, strength=strength)
    _, states = all_states(limit_with((RademacherCoordinate(),), prior))

    def unmet(unknowns):
        q, G = unknowns
        scale = 2 / (NOISE * (1 + q * q))

        def average(f):
            def mass(w):
                return np.exp(scale * (G * w * w / 2 + GAINS[0] * q * w - TAU * strength * potential(w)))

            # u = -1 mirrors u = 1
            ranges = ((-8, 0), (0, 2), (2, 8))
            pieces = [quad(lambda w: f(w) * mass(w), *ends, epsabs=1e-13) for ends in ranges]  # a reference: rounding
            return sum(piece[0] for piece in pieces)

        total = average(lambda w: 1.0)
        return [average(lambda w: w) / total - q, average(lambda w: w * w) / total - 1]

    largest = max(states, key=lambda state: state.q[0])
    assert largest.q[0] > 0.5
    q, G = fsolve(unmet, (0.9, -0.4), xtol=1e-12)
    assert largest.q[0] == pytest.approx(q, abs=1e-8)  # fsolve: the root of its tolerance, times the condition
    assert pytest.approx(G, abs=1e-8) == largest.G  # likewise


def test_branches_follow_the_closed_form_through_its_pitchfork():
    """As the noise grows the recovered states meet at q = 0, where c = 2 a."""
    equations = StationaryBranches(lambda noise: limit_with((GaussianCoordinate(),), noise=noise), (0.2, 1.2))
    branches = all_branches(equations, (0.2, 1.2), 0.1)
    bent = [branch for branch in branches if np.abs(branch.x).max() > 1e-6]
    assert len(branches) == 2
    assert len(bent) == 1
    inside = ~bent[0].turning
    expected = recovered(GAINS[0], bent[0].p[inside])
    assert np.abs(bent[0].x[inside, 0]) == pytest.approx(expected, abs=1e-7)  # steep close to the pitchfork
    assert bent[0].p[bent[0].turning] == pytest.approx([2 * GAINS[0]], abs=1e-6)  # q is 0 to 1e-3; p is its square


def test_laws_may_depend_on_the_parameter():
    def limit_at(p):
        return limit_with((RademacherCoordinate(),) if p < 0.5 else (GaussianCoordinate(),), PriorSettings(name="l1"))

    equations = StationaryBranches(limit_at, (0.0, 1.0))
    assert len(equations.at(0.0).coordinates.tilts(np.ones(1)).weight) == 2
    assert len(equations.at(1.0).coordinates.tilts(np.ones(1)).weight) > 2


@pytest.mark.slow  # a process of its own; tests/test_architecture.py reads all imports in the fast run
def test_nothing_of_any_family_is_imported():
    code = "import sys, meanfield.mckean_vlasov.stationary; print([n for n in sys.modules if '.families' in n])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_state_without_any_tilt_has_nodes_on_a_line():
    limit = limit_with((UniformCoordinate(), UniformCoordinate()), PriorSettings(name="quartic"))
    equations = StationaryEquations(limit)
    state = equations.on_a_line(equations.state(np.zeros(2)))
    assert len(state.tilts.tilt) < 100
    assert state.tilts.weight.sum() == pytest.approx(1.0, abs=1e-13)  # rounding
    assert state.tilts.second.sum(axis=0) == pytest.approx(np.eye(2), abs=1e-13)  # rounding
