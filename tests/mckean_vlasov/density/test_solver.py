"""Densities of limits that belong to no family: closures in Python with exact solutions, and FiPy."""

from types import SimpleNamespace

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.extend import DensitySettings, Limit, PriorSettings
from meanfield.ingredients.laws import GaussianCoordinate, GaussianResidual
from meanfield.ingredients.laws.coordinate import RademacherCoordinate
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.mckean_vlasov.density import solution, solver
from meanfield.mckean_vlasov.density.solver import solve

GAIN, NOISE = 0.5, 0.2
TOLERANCE = 1e-5
ONE = (GaussianCoordinate(),)
TWO = (GaussianCoordinate(), RademacherCoordinate())


def linear(q):
    """A closure g = -a q with constant Lambda: |q| grows to sqrt(1 - Lambda/(2 a))."""
    return -GAIN * q, NOISE


def make_limit(closure=linear, prior=None, coordinates=ONE, overlap=(0.3,), stop=4.0, **more):
    return Limit(
        closure=closure,
        learning_rate=0.1,
        prior=prior or PriorSettings(),
        coordinates=coordinates,
        initial_overlap=np.array(overlap),
        initial_residual=GaussianResidual(),
        times=np.linspace(0.0, stop, 5),
        **more,
    )


def exact_overlap(limit):
    """dq/dt = (q.g - Lambda/2) q - g leaves the direction of q, and its square obeys a logistic equation."""
    k = GAIN - 0.5 * NOISE
    square = limit.initial_overlap @ limit.initial_overlap
    length = np.sqrt(k / (GAIN + (k / square - GAIN) * np.exp(-2.0 * k * limit.times)))
    return length[:, None] * limit.initial_overlap / np.sqrt(square)


@pytest.mark.parametrize(
    ("coordinates", "overlap", "stop"),
    [(ONE, (0.3,), 4.0), (TWO, (0.3, 0.2), 4.0), (TWO[1:], (0.3,), 0.05)],  # the last one has no error but cut tails
    ids=["one feature", "two features", "a feature of two values"],
)
def test_linear_closure_has_the_exact_gaussian_density(coordinates, overlap, stop):
    """w|u ~ N(u.q, 1 - |q|^2) at all times (theory.md, section 2)."""
    limit = make_limit(coordinates=coordinates, overlap=overlap, stop=stop)
    found = solve(limit, DensitySettings(tolerance=TOLERANCE))
    assert found.error_between_nodes(limit) >= 0.0  # of some output times, which are computed once
    arrays, q = found.arrays(limit), exact_overlap(limit)
    assert found.status == "complete"
    assert stop < 1 or q[-1] @ q[-1] > 0.2 + q[0] @ q[0]
    np.testing.assert_allclose(arrays["q"], q, rtol=0, atol=TOLERANCE)  # what was asked for
    np.testing.assert_allclose(arrays["norm"], 1.0, rtol=0, atol=TOLERANCE)  # E[w^2] is as accurate as q
    np.testing.assert_allclose(arrays["g"], -GAIN * arrays["q"], rtol=1e-15)  # rounding
    np.testing.assert_array_equal(arrays["Lambda"], NOISE)
    edges, u, gaussian = edges_of(arrays), arrays["u"], GaussianResidual()
    exact = np.array([gaussian.cell_average(edges, u @ p, np.sqrt(1 - p @ p)) for p in q])
    distance = (np.abs(arrays["P"] - exact) @ np.diff(edges)) @ arrays["u_weight"]
    assert (distance <= arrays["P_error"] + 1e-12).all()  # what it promises, and rounding
    alone, exact_alone = arrays["P_w"] @ np.diff(edges), np.einsum("n,tnc->tc", arrays["u_weight"], exact)
    np.testing.assert_allclose(alone, 1.0, rtol=0, atol=1e-9)  # every time is there
    if coordinates == TWO[1:]:
        assert (np.abs(arrays["P_w"] - exact_alone) @ np.diff(edges) <= arrays["P_error"] + 1e-12).all()  # the same
    assert arrays["P_error"].max() < 1e-3  # cells of 0.06, and extrapolation between them


@pytest.mark.slow  # two features take the same steps in families/contrastive/density/test_fipy.py
@pytest.mark.parametrize(("name", "strength", "features"), [("l1", 2.0, 2), ("quartic", 0.5, 1)])
def test_a_limit_with_a_prior_is_the_same_by_fipy(name, strength, features):
    settings = PriorSettings(name=name, strength=strength)
    limit = make_limit(prior=settings, coordinates=TWO[:features], overlap=(0.3, 0.2)[:features], stop=1.0)
    settings = DensitySettings(order=2, cells=60, half_width=12.0, feature_nodes=5, steps=20)
    ours, fipys = (solve(limit, settings, backend) for backend in ("numba", "fipy"))
    assert ours.status == fipys.status == "complete"
    assert np.abs(ours.moments[-1] - ours.moments[0]).max() > 0.01  # there is something to agree on
    # FiPy takes the drift's weight as 1/2 where |z| < 1e-3 and is off by z/12 there; a face or two in each node
    np.testing.assert_allclose(fipys.moments, ours.moments, rtol=0, atol=1e-9)  # z/12, z < 1e-3
    np.testing.assert_allclose(fipys.density, ours.density, rtol=0, atol=1e-9)  # the same


def test_a_family_says_its_own_remedies():
    limit = make_limit(lambda q: (-1e3 * q, 2e3), remedy_if_too_fast="lower model.eta")
    assert "lower model.eta" in solve(limit, DensitySettings(steps=8)).status
    assert "lower the learning rate" in solve(make_limit(lambda q: (-1e3 * q, 2e3)), DensitySettings(steps=8)).status


def test_what_the_density_cannot_do_is_refused():
    with pytest.raises(InputError, match="4 of them"):
        solve(make_limit(coordinates=4 * ONE, overlap=4 * (0.3,)))
    with pytest.raises(InputError, match="numba, fipy"):
        solve(make_limit(), backend="fenics")
    with pytest.raises(InputError, match=r"closure: g has shape \(2,\) for 1 feature"):
        solve(make_limit(lambda q: (np.ones(2), 0.1)))


def test_a_closure_in_python_is_tabulated_once():
    calls = []

    def counting(q):
        calls.append(q)
        return linear(q)

    limit = make_limit(counting)
    steps = DensitySettings(cells=60, steps=4000, feature_nodes=5)
    assert solve(limit, steps).status == "complete"
    assert len(calls) < 400  # a table takes some 100 calls, plans and outputs a few more
    before = len(calls)
    solve(limit, steps)
    assert len(calls) - before < 40  # plans and outputs alone


@pytest.mark.parametrize(("most", "ways"), [(solution.MOST_VALUES, solution.GOOD_ENOUGH), (0, np.inf)])
def test_very_large_densities_are_averaged_over_u_in_the_cheapest_way(monkeypatch, most, ways):
    asked = []
    average = solution.marginal_density
    monkeypatch.setattr(solution, "MOST_VALUES", most)
    monkeypatch.setattr(solution, "marginal_density", lambda *given: asked.append(given[-1]) or average(*given))
    limit = make_limit()
    solve(limit, DensitySettings(tolerance=TOLERANCE)).arrays(limit)
    assert set(asked) == {ways}


@pytest.mark.parametrize("errors", [[0.02, 0.01, 0.03, 0.04], [0.02, 1e-4]])
def test_of_solutions_with_more_nodes_the_best_one_is_taken(errors):
    solutions = [SimpleNamespace(status="complete", error_between_nodes=lambda _, x=x: x) for x in errors]
    following = iter(solutions[1:])
    found = solver._with_enough_nodes(make_limit(), solutions[0], lambda scale: next(following))
    assert found is solutions[1]
