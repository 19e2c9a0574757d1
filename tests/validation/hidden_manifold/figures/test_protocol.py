"""What the studies of figures on hidden manifolds run: latents, steps of SGD, and the ODE from the start of a run."""

import math

import numpy as np
import pytest
from scipy import integrate

from meanfield.families.hidden_manifold.order_parameters.system import observables, unpacked
from validation.hidden_manifold.figures.laws import LAWS, MATCHED, STANDARDISED, Samples, draw_means, make_law
from validation.hidden_manifold.figures.mixtures import divergence
from validation.hidden_manifold.figures.runs import order_parameters, train
from validation.hidden_manifold.figures.sgd import Start, Student, advance, draw_start, students_of
from validation.hidden_manifold.figures.start_from_run import own_system, solve_from, solve_limit

ALPHA, M, D, SAMPLES = 3.0, 3, 12, 20000


@pytest.fixture(scope="module")
def latents():
    """A function from the name of a law to samples of C itself: features and teachers together are the identity."""
    rng = np.random.default_rng(0)
    start = Start(np.eye(D, dtype=np.float32), np.zeros((2, D - 2)), np.zeros(2), np.zeros(2))
    means, samples = draw_means(rng, M, D), Samples(start, (M,), SAMPLES, rng)
    samples.draw(SAMPLES)
    return means, lambda name: samples.of(make_law(name, start, means, ALPHA)).astype(float)


def expected(name, means):
    """Means and covariance of latents under a law."""
    number, vector = ALPHA * means.number, ALPHA * means.vector
    if name.startswith("sample"):
        covariance = np.eye(D) + np.cov(vector.T, bias=True)
        if name == "sample":
            return vector.mean(axis=0), covariance
        return np.zeros(D), covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    if name in STANDARDISED.values():
        return np.zeros(D), np.eye(D)
    return np.full(D, number.mean()), (1.0 + number.var()) * np.eye(D)


@pytest.mark.parametrize("name", LAWS)
def test_laws_have_their_means_and_covariances(latents, name):
    """Five standard errors of 90 numbers each for five laws: one false alarm in 4000 seeds."""
    means, draw = latents
    C, (mean, covariance) = draw(name), expected(name, means)
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((C.mean(axis=0) - mean) / scale, 0, atol=5 / math.sqrt(SAMPLES))
    # An entry of the covariance of unit variables has the variance 2 at most, in these laws.
    np.testing.assert_allclose((np.cov(C.T) - covariance) / np.outer(scale, scale), 0, atol=5 * math.sqrt(2 / SAMPLES))


def test_components_are_drawn_for_each_latent_or_for_each_sample(latents):
    """Distances of two latents from their common mean go together where a sample has one component."""
    _, draw = latents
    together = {}
    for name in LAWS:
        distance = np.abs(draw(name))
        together[name] = np.abs(np.corrcoef(distance.T)[np.triu_indices(D, 1)]).max()
    assert min(together["sample"], together["sample, standardised"]) > 0.3
    independent = [together[name] for name in ("coordinate", "coordinate, standardised", MATCHED)]
    assert max(independent) < 5 / math.sqrt(SAMPLES)  # 66 correlations each; one false alarm in 10^4 seeds


def test_laws_are_mixtures(latents):
    """The fourth moment of a latent, which a Gaussian with the same variance does not have."""
    means, draw = latents
    mu = ALPHA * (means.number - means.number.mean())
    exact = np.mean(mu**4 + 6 * mu**2 + 3) / (1 + mu.var()) ** 2
    fourth = (draw("coordinate, standardised") ** 4).mean(axis=0)
    np.testing.assert_allclose(fourth.mean(), exact, atol=0.05)  # ten standard errors; a Gaussian has 3
    assert abs(exact - 3) > 0.5


@pytest.mark.parametrize("relu", [True, False])
def test_steps_are_those_of_the_paper(relu):
    rng = np.random.default_rng(1)
    N, K, M = 7, 2, 3
    fields, vt = rng.standard_normal((4, N + M)).astype(np.float32), rng.standard_normal(M)
    student = Student(rng.standard_normal((K, N)), rng.standard_normal(K), relu)
    W, v = student.W.copy(), student.v.copy()
    advance(fields, student, vt, 0.2)
    g = (lambda x: np.maximum(x, 0)) if relu else (lambda x: np.vectorize(math.erf)(x / math.sqrt(2)))
    slope = (lambda x: (x > 0) * 1.0) if relu else (lambda x: math.sqrt(2 / math.pi) * np.exp(-(x**2) / 2))
    for row in fields.astype(float):
        x, nu = np.sign(row[:N]), row[N:]
        own = W @ x / math.sqrt(N)
        delta = v @ g(own) - vt @ g(nu)
        W, v = W - 0.2 / math.sqrt(N) * delta * np.outer(v * slope(own), x), v - 0.2 / N * delta * g(own)
    np.testing.assert_allclose(student.W, W, rtol=1e-12)  # rounding of a sum of 7 numbers
    np.testing.assert_allclose(student.v, v, rtol=1e-12)


def test_ode_begins_where_sgd_does():
    """Q and R of the state of the ODE, from eigenvectors, and those from the weights."""
    start = draw_start(np.random.default_rng(2), 40, 20)
    system, y = own_system(start, "relu")
    found = observables(system, unpacked(system, y))
    weights = order_parameters(start, students_of(start)[:1])
    np.testing.assert_allclose(found["Q"], weights["Q"][0], rtol=1e-12)  # rounding of sums of 20 numbers
    np.testing.assert_allclose(found["R"], weights["R"][0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found["v"], start.v)
    state = unpacked(system, y)
    students, teachers = (np.einsum("nkk->nk", gram) for gram in (state.sigma, system.t))
    np.testing.assert_allclose(state.r**2, students[:, :, None] * teachers[:, None, :], rtol=1e-10)  # one vector a node


def test_ode_of_the_limit_is_that_of_an_own_start_at_large_sizes():
    """Overlaps of a start are off by O(1/sqrt(N)); two sizes with a factor of 16 between them."""
    distance = []
    for N in (32, 512):
        start = draw_start(np.random.default_rng(6), N, N // 2)
        own, limit = (solve(start, "scaled_erf", np.array([0.5, 1.0])) for solve in (solve_from, solve_limit))
        distance.append(max(float(np.abs(own[name] - limit[name]).max()) for name in ("Q", "R", "v")))
    assert distance[1] < 0.5 * distance[0]  # 1/4 on average
    assert distance[1] < 5 / math.sqrt(512)


def test_laws_share_their_random_numbers_and_activations_their_samples():
    """Training on many laws at once gives each the weights that it has alone."""
    start, rng = draw_start(np.random.default_rng(3), 30, 15), np.random.default_rng(4)
    laws = [make_law(name, start, draw_means(rng, M, 15), ALPHA) for name in LAWS]
    together = train(start, laws, Samples(start, (M,), 64, np.random.default_rng(5)), order_parameters, [1, 90])
    alone = train(start, laws[-1:], Samples(start, (M,), 64, np.random.default_rng(5)), order_parameters, [1, 90])
    assert together["Q"].shape == (len(LAWS), 2, 2, 2, 2)
    np.testing.assert_array_equal(together["v"][-1], alone["v"][0])


def test_divergence_by_adaptive_quadrature():
    means = np.array([-7.0, 0.5, 2.0])

    def integrand(x):
        p = np.exp(-((x - means) ** 2) / 2).mean() / math.sqrt(2 * math.pi)
        return p * (math.log(p) + x**2 / 2 + math.log(2 * math.pi) / 2)

    exact = integrate.quad(integrand, -16, 12, points=means, epsabs=1e-10, limit=200)[0]
    assert divergence(means) == pytest.approx(exact, abs=1e-8)  # the quadrature is asked for 1e-10
    assert divergence(np.zeros(1)) == pytest.approx(0, abs=1e-14)
