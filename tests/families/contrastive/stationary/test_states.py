"""All stationary states: none is missed, runs end in them, and the Dataset holds what it says."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq

import meanfield
from meanfield import find_stationary_states, solve_density
from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.mckean_vlasov.order_parameters import rate
from meanfield.mckean_vlasov.stationary import search
from meanfield.mckean_vlasov.stationary.search import NODE_ERROR
from tests.example_problems import feature, features, gaussian, make_problem

TWO = features(feature(0.6), feature(0.3, coordinate="rademacher"))


def prior(name, strength):
    return f'prior = {{ name = "{name}", strength = {strength} }}'


@pytest.fixture(scope="module")
def states():
    return find_stationary_states(make_problem(prior("l1", 0.2)))


def own_residual(problem):
    """E[u w] - q as a function of q, by a trapezoid in u, uniform cells in w, and bisection for G."""
    u = np.linspace(-8, 8, 33)  # a step of 1/2: the trapezoidal rule of a Gaussian errs by exp(-2 pi^2/h^2) = 1e-34
    probability = np.exp(-0.5 * u * u) / np.exp(-0.5 * u * u).sum()
    w = (np.linspace(-8, 8, 1601)[1:] + np.linspace(-8, 8, 1601)[:-1]) / 2
    potential = np.concatenate([[0], np.cumsum(problem.prior.potential_steps(w))])
    tau, closure = problem.model.learning_rate, Closure(problem)

    def density(q, G):
        g, diffusion = closure(np.array([q]))
        energy = 2 / diffusion * (G * w * w / 2 - u[:, None] * g * w - tau * potential)
        P = np.exp(energy - energy.max(axis=1, keepdims=True))
        return P / P.sum(axis=1, keepdims=True)

    def residual(q):
        G = brentq(lambda G: probability @ density(q, G) @ (w * w) - 1, -2.0, 0.1, xtol=1e-13)
        return (probability * u) @ density(q, G) @ w - q

    return residual


@pytest.mark.parametrize(
    ("name", "strength"),
    [
        ("l1", 0.2),
        # fixed points are found without a prior in test_small_noise.py, and a run ends in a state of the other below
        pytest.param("none", 1.0, marks=pytest.mark.slow),
        pytest.param("quartic", 0.5, marks=pytest.mark.slow),
    ],
)
def test_one_feature_has_the_roots_of_a_fine_grid(name, strength):
    problem = make_problem(prior(name, strength), "model.learning_rate = 0.05")
    residual = own_residual(problem)
    grid = np.linspace(-0.96, 0.96, 24)  # the roots of this problem lie between
    values = np.array([residual(q) for q in grid])
    brackets = np.flatnonzero(values[:-1] * values[1:] < 0)
    roots = [brentq(residual, grid[i], grid[i + 1], xtol=1e-13) for i in brackets]
    found = find_stationary_states(problem)
    assert len(roots) == 3
    # 1600 uniform cells of width 0.01 resolve a kink to h^2/12 times jumps of order tau/Lambda
    assert found["q"].values[:, 0] == pytest.approx(roots, abs=1e-5)  # said above
    assert found["stability"].values.tolist() == [1, -1, 1]


def test_two_symmetric_features_have_all_states_of_a_grid_search():
    problem = make_problem(features(feature(0.5), feature(0.3)))
    closure, found = Closure(problem), find_stationary_states(problem)["q"].values
    axis = np.linspace(-0.99, 0.99, 67)
    speeds = {}
    for i, j in product(range(67), repeat=2):
        q = np.array([axis[i], axis[j]])
        if q @ q < 0.999:
            speeds[i, j] = rate(closure, q)
    # cells at whose corners both components of dq/dt change sign
    cells = []
    for i, j in speeds:
        corners = [speeds.get((i + a, j + b)) for a, b in product((0, 1), repeat=2)]
        if all(c is not None for c in corners):
            signs = np.sign(corners)
            if np.all(signs.min(axis=0) < signs.max(axis=0)):
                cells.append(np.array([axis[i], axis[j]]) + 0.5 * (axis[1] - axis[0]))
    assert cells
    assert len(found) == 9
    for cell in cells:  # each holds a state or lies beside one
        assert np.linalg.norm(found - cell, axis=1).min() < 3 * (axis[1] - axis[0])
    for q in found:
        assert min(np.linalg.norm(q - cell) for cell in cells) < 3 * (axis[1] - axis[0])
        assert rate(closure, q) == pytest.approx(0, abs=1e-12)  # roots to 1e-12


def test_two_features_with_a_prior_have_the_same_nine():
    found = find_stationary_states(make_problem(features(feature(0.5), feature(0.3)), prior("quartic", 0.3)))
    assert found.sizes["state"] == 9
    signs = sorted(np.sign(np.round(found["q"].values, 9)).tolist())
    assert signs == sorted([float(i), float(j)] for i, j in product((-1, 0, 1), repeat=2))
    assert (found["stability"] == 1).sum() == 4
    assert np.abs(found["multiplier_residual"]).max() < 1e-11  # rounding of a sum of terms of order one


def run_settings(stop, steps):
    return (
        "model.learning_rate = 0.05",
        f"density = {{ cells = 600, feature_nodes = 61, half_width = 12.0, steps = {steps} }}",
        f"time = {{ stop = {stop}, outputs = 3 }}",
    )


def check_run(*lines):
    """A run ends in one of the states, to the density's own accuracy of 1e-6, and its density is the one found."""
    problem = make_problem(*lines)
    run, found = solve_density(problem), find_stationary_states(problem)
    assert run.status == "complete"
    distances = np.linalg.norm(found["q"].values - run["q"].values[-1], axis=1)
    state = found.isel(state=int(distances.argmin()))
    assert distances.min() < 1e-6  # asked for
    assert float(state["r"]) == pytest.approx(float(run["r"][-1]), abs=1e-6)  # asked for
    assert int(state["stability"]) == 1
    assert np.array_equal(state["u"], run["u"])


def test_a_run_ends_in_a_state():
    check_run(prior("quartic", 0.5), features(feature(0.93)), *run_settings(50.0, 800))


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [(prior(name, 1.0),) for name in ("l1", "elastic_net", "double_well")]
    + [(prior("quartic", 0.5),), (prior("quartic", 0.3), TWO)],
    ids=["l1", "elastic_net", "double_well", "quartic", "two features"],
)
def test_runs_to_a_thousand_end_in_a_state(lines):
    check_run(*lines, *run_settings(1000.0, 10000))


def test_stored_density_has_the_stored_moments(states):
    h = np.diff(edges_of(states))
    mass = states["P"].values * h
    assert mass.sum(axis=2) == pytest.approx(1, abs=1e-13)  # normalised
    u, weight = nodes_of(states)
    q = np.einsum("snw,n,nf,w->sf", mass, weight, u, states["w"])
    # centres stand for cells: h^2/12 times the slope of P, h = 0.015 in the middle and 0.13 at the ends
    assert q == pytest.approx(states["q"].values, abs=2e-3)  # said above
    assert states["residual"].max() < NODE_ERROR  # the nodes in u leave that much of q, and slopes are about 1
    assert states["quadrature_error"].max() < 1e-10  # what nodes are chosen for


def test_potential_is_there_only_where_there_is_one(states):
    assert "potential" not in states
    left, middle, right = find_stationary_states(make_problem())["potential"].values
    assert middle == pytest.approx(0, abs=1e-15)  # at q = 0 by definition; q is 0 to rounding
    assert left == pytest.approx(right, rel=1e-9)  # symmetric
    assert left < 0  # lower at the stable states: V falls along solutions
    assert "potential" not in find_stationary_states(make_problem(features(feature(0.5), feature(0.3))))


HARD = {
    "strong l1": (prior("l1", 10.0), "model = { learning_rate = 0.05, batch_size = 1000 }"),
    "little noise, two wells": ("model.batch_size = 100000", prior("double_well", 0.3)),
    "no noise, two wells": ("model.batch_size = 1000000", prior("double_well", 0.3)),
    "atoms": (prior("l1", 1.0), features(feature(0.5, coordinate="rademacher"))),
}
LONG = {"no noise, two wells"}  # ten times as long as with ten times the noise, which the fast run has


@pytest.mark.parametrize(
    "lines",
    [pytest.param(lines, marks=pytest.mark.slow if name in LONG else (), id=name) for name, lines in HARD.items()],
)
def test_hard_cases(lines):
    found = find_stationary_states(make_problem(*lines))
    assert np.isfinite(found["q"]).all()
    assert (np.abs(found["q"]) < 1).all()
    assert (np.abs(found["multiplier_residual"]) < 1e-10 * (1 + np.abs(found["r"]))).all()  # rounding
    resolved = found["quadrature_error"] < 1e-3
    assert np.isfinite(found["growth_rate"]).all()
    assert (resolved | (found["stability"] != 1)).all()


def test_where_no_density_is_stationary_there_is_none():
    found = find_stationary_states(make_problem(prior("l1", 100.0)))
    assert found.sizes["state"] == 0
    status = found.attrs["status"]
    assert status.startswith("failed: no stationary state with noise was found below |q| = 1 - 1e-8; ")
    assert "; at q = 0 the prior outweighs the noise: Lambda = " in status
    # Lambda = 240 tau^2/m and Lambda_c = sqrt(2) tau strength with tau = 0.02, m = 10 (theory.md, section 8)
    assert "Lambda = 0.0096, below Lambda_c = 2.83, holds 1.2e-05 of the norm" in status
    assert (
        "lower prior.strength below 0.339, or raise model.learning_rate / model.batch_size by a factor of 295" in status
    )


RARE = "states may be missing near q = 0: where few weights"


@pytest.mark.parametrize(("law", "warned"), [("laplace", True), ("uniform", False)])
def test_an_empty_list_says_that_rare_coordinates_could_change_it(law, warned):
    found = find_stationary_states(make_problem(prior("l1", 100.0), features(feature(0.2, coordinate=law))))
    assert found.sizes["state"] == 0
    assert (RARE in found.attrs.get("warning", "")) == warned


@pytest.mark.slow  # a state near the answer changes none of the lines that say so
@pytest.mark.parametrize(("law", "warned"), [("laplace", True), ("uniform", False)])
def test_an_answer_that_rare_coordinates_could_change_says_so(law, warned):
    """With Laplace's law there is a state near q = 0.006, which weights with rare u carry."""
    lines = features(feature(0.2, '{ law = "laplace", second_moment = 1.5091 }', coordinate=law))
    model = 'model = { activation = "erf", learning_rate = 0.01881, batch_size = 50 }'
    noise = "augmentation = { variance = [0.4911, 0.0445], correlation = -0.2742 }"
    found = find_stationary_states(make_problem(lines, model, noise, prior("cauchy", 1.836)))
    assert found.sizes["state"] == 0
    assert (RARE in found.attrs.get("warning", "")) == warned


def test_branches_without_a_state_say_where_it_comes_closest_and_why_some_may_be_missing(monkeypatch):
    monkeypatch.setattr(search, "MOST_DENSITIES", 1)
    found = meanfield.contrastive.continue_stationary_states(
        make_problem(prior("l1", 100.0)), "prior.strength", 100.0, 50.0, points=5
    )
    assert found.sizes["point"] == 0
    assert "; at prior.strength = 50 and q = 0 the prior outweighs the noise" in found.attrs["status"]
    both = found, find_stationary_states(make_problem(prior("l1", 100.0)))
    assert all(one.attrs["warning"].startswith("states may be missing: the search ended early") for one in both)


def test_four_features_are_refused_and_a_random_start_does_not_matter():
    with pytest.raises(InputError, match="features: 4 of them, but stationary states are found for one to 3"):
        find_stationary_states(make_problem(features(*[feature(0.1)] * 4)))
    random = find_stationary_states(make_problem(features(feature("random", gaussian(1.4)))))
    assert random["q"].equals(find_stationary_states(make_problem(features(feature(0.2, gaussian(1.4)))))["q"])
