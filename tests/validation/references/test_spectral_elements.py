"""The reference solver of the density: exact solutions, stationary states, conservation, and convergence."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import meanfield
from meanfield.families.contrastive.closures import Closure
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.order_parameters import rate
from tests.example_problems import feature, features, make_problem
from validation.references import element_mesh
from validation.references import spectral_elements as spectral

pytestmark = pytest.mark.slow  # its solutions are in files, which tests of densities read

QUICK = ("time.outputs = 3", "time.stop = 4.0")
ATOMS = features(feature(coordinate="rademacher"))


@cache
def quick_solution(prior):
    """A problem with one node in u, and its solution at the default resolution."""
    problem = make_problem(ATOMS, f'prior.name = "{prior}"', *QUICK)
    return problem, spectral.reference_solution(problem)


def test_edges_lie_on_kinks_and_crowd_there():
    edges = element_mesh.graded_edges(2.0, 1.0, (0.5,), 2, 0.25)
    expected = [-2, -1.9375, -1.75, -1, 0, 0.375, 0.46875, 0.5, 0.546875, 0.6875, 1.25, 1.8125, 1.953125, 2.0]
    np.testing.assert_allclose(edges, expected, rtol=1e-14)  # rounding


def test_polynomials_are_projected_and_evaluated_exactly():
    mesh = element_mesh.Mesh(np.array([-1.0, -0.2, 0.0, 1.5]), 5)
    w = np.linspace(-1.0, 1.5, 40)
    values = mesh.project(np.array([mesh.points**5, 1 - mesh.points]))
    np.testing.assert_allclose(mesh.evaluate(values, w), np.column_stack([w**5, 1 - w]), atol=1e-12)  # rounding


def test_elements_are_solved_as_the_assembled_matrix():
    mesh = element_mesh.Mesh(np.array([-1.0, -0.2, 0.0, 1.5, 2.0]), 4)
    common = mesh.mass_matrix() - 0.3 * mesh.drift_matrix(np.sin(mesh.points)) + 0.2 * mesh.diffusion_matrix()
    tilt = mesh.drift_matrix(np.ones_like(mesh.points))[0]
    tilts = np.linspace(-0.3, 0.4, 19)  # more than one batch, and the second not full
    loads = np.random.default_rng(1).standard_normal((mesh.size, 19))
    x = element_mesh.solve_elements(common, tilt, tilts, loads)
    for column, scale in enumerate(tilts):
        full = np.zeros((mesh.size, mesh.size))
        for e, matrix in enumerate(common):
            full[4 * e : 4 * e + 5, 4 * e : 4 * e + 5] += matrix + scale * tilt
        np.testing.assert_allclose(full @ x[:, column], loads[:, column], atol=1e-12)  # rounding, condition 1e3


@pytest.mark.parametrize("law", ["gaussian", "uniform", "laplace", "rademacher"])
def test_nodes_average_over_the_coordinates(law):
    problem = make_problem(features(feature(0.3, coordinate=law), feature(0.2, coordinate="uniform")))
    u, weight = spectral.feature_nodes(problem, spectral.Resolution())
    fourth = {"gaussian": 3.0, "uniform": 9 / 5, "laplace": 6.0, "rademacher": 1.0}[law]
    found = weight @ np.column_stack([u[:, 0] ** 0, u**2, u[:, 0] ** 4, u[:, 0] * u[:, 1], u[:, 0] ** 2 * u[:, 1] ** 2])
    # Laplace's law is cut at 28, where 6e-18 of it lie beyond, and 3e-12 of its fourth moment
    tolerance = 1e-11 if law == "laplace" else 1e-13  # see the line above; rounding
    np.testing.assert_allclose(found, [1, 1, 1, fourth, 0, 1], atol=tolerance)  # see the line above
    assert len(np.unique(np.concatenate([u, -u]), axis=0)) == 2 * len(u)  # one of each pair u, -u


@pytest.mark.parametrize(("prior", "coordinate"), [("none", "uniform"), ("l2", "rademacher")])
def test_linear_priors_keep_the_density_gaussian(prior, coordinate):
    problem = make_problem(features(feature(coordinate=coordinate)), f'prior.name = "{prior}"', *QUICK)
    u = np.array([[-1.3], [0.4]])
    reference = spectral.reference_solution(problem, also_at=u)
    exact = exact_overlaps(problem)
    np.testing.assert_allclose(reference.q, exact, atol=1e-11)  # 30 steps with a tolerance of 3e-12, mostly undercut
    np.testing.assert_allclose(reference.r, 1.0 if prior == "l2" else 0.0, atol=1e-11)  # phi = w: r = E[w^2]
    w = np.linspace(-3.0, 3.0, 13)
    q, variance = exact[-1, 0], 1 - exact[-1, 0] ** 2
    gaussian = np.exp(-0.5 * (w - q * u) ** 2 / variance) / math.sqrt(2 * math.pi * variance)
    np.testing.assert_allclose(reference.density(-1, w)[-2:], gaussian, atol=1e-8)  # 3e-12 over the share of the norm


def test_two_features_without_a_prior():
    hidden = '{ law = "gaussian", second_moment = 1.5 }'
    tables = feature(0.3, coordinate="rademacher"), feature(-0.5, hidden, coordinate="uniform")
    problem = make_problem(features(*tables), *QUICK)
    reference = spectral.reference_solution(problem, replace(spectral.Resolution(), panel=2.0))
    np.testing.assert_allclose(reference.q, exact_overlaps(problem), atol=1e-10)  # 10 nodes on 2 units leave 2e-11


def exact_overlaps(problem):
    closure, times = Closure(problem), problem.time.outputs_at
    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-15}
    solution = solve_ivp(
        lambda _, q: rate(closure, q), times[[0, -1]], problem.initial_overlap, t_eval=times, **options
    )
    return solution.y.T


@pytest.mark.parametrize(
    ("prior", "potential"),
    [("l1", abs), pytest.param("quartic", lambda w: 0.25 * w**4, marks=pytest.mark.slow)],
    ids=["l1", "quartic"],
)
def test_the_end_is_the_stationary_state(prior, potential):
    problem = make_problem(ATOMS, f'prior.name = "{prior}"', "time.stop = 500.0", "time.outputs = 2")
    reference = spectral.reference_solution(problem)
    (q,), r = reference.q[-1], reference.r[-1]
    (g,), diffusion = Closure(problem)(reference.q[-1])
    tau, force = problem.model.learning_rate, problem.prior.force
    bracket = q * g + tau * r - 0.5 * diffusion

    def boltzmann(w):  # theory.md, section 6, at u = 1; u = -1 is its mirror image
        return math.exp(2 / diffusion * (0.5 * bracket * w * w - g * w - tau * potential(w)))

    def average(f):
        exact = {"epsabs": 0, "epsrel": 1e-12, "limit": 500}  # a hundredth of what is compared below
        return quad(lambda w: f(w) * boltzmann(w), -9, 9, points=[0, q], **exact)[0]

    mass = average(lambda w: 1.0)
    np.testing.assert_allclose(average(lambda w: w) / mass, q, atol=1e-10)  # rounding, E[w^2] = 1 is but 1e-12
    np.testing.assert_allclose(average(lambda w: w * float(force(np.array([w]))[0])) / mass, r, atol=1e-10)  # likewise
    w = np.linspace(-1.0, 2.0, 13)
    density = reference.density(-1, w)[np.argmax(reference.u[:, 0] == 1.0)]
    np.testing.assert_allclose(density, [boltzmann(x) / mass for x in w], atol=1e-8)  # as for linear priors


@pytest.mark.parametrize("prior", ["l1", "double_well"])
def test_mass_and_norm_are_conserved(prior):
    _, reference = quick_solution(prior)
    np.testing.assert_allclose(reference.mass, 1, atol=3e-12)  # rounding in small elements
    np.testing.assert_allclose(reference.norm, 1, atol=1e-11)  # some 50 steps with a tolerance of 3e-12


def test_the_estimate_bounds_the_error():
    problem, best = quick_solution("l1")
    coarse = spectral.Resolution(width=1.0, degree=8, layers=1, tolerance=1e-8, columns=5)
    solution = spectral.reference_solution(problem, coarse)
    bound = sum(spectral.estimated_errors(problem, solution, coarse).values())
    error = abs(np.column_stack([solution.q - best.q, solution.r - best.r]))
    assert np.all(error <= bound + 1e-11)  # the error of the better solution
    assert 1e-10 < bound.max() < 1e-5  # so that the line above says something


def test_the_solver_of_the_library_converges_to_the_reference():
    problem, reference = quick_solution("cauchy")
    coarse, fine = (library_errors(problem, reference, cells, steps) for cells, steps in ((400, 40), (800, 80)))
    np.testing.assert_allclose(coarse / fine, 16, rtol=0.1)  # order 4; the next one changes that by less
    assert fine.max() < 1e-7


def test_it_comes_close_under_a_prior_with_a_kink():
    # the layer at the kink, which is sharp at t = 0, lowers the order in the width of cells
    assert library_errors(*quick_solution("l1"), 800, 80).max() < 1e-7


def library_errors(problem, reference, cells, steps):
    settings = DensitySettings(cells=cells, steps=steps)
    found = meanfield.solve_density(meanfield.with_value(problem, "density", settings))
    return np.array([abs(found.q.values - reference.q).max(), abs(found.r.values - reference.r).max()])


def test_what_it_cannot_solve_is_refused():
    with pytest.raises(ValueError, match="Gaussian residual"):
        spectral.reference_solution(make_problem(ATOMS, 'initial_residual.law = "uniform"', *QUICK))
    with pytest.raises(ValueError, match="raise half_width"):
        spectral.reference_solution(make_problem(ATOMS, *QUICK), spectral.Resolution(half_width=4.0))
