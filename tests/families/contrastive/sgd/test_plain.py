"""Plain SGD against theory.md, section 1, written again in NumPy with the same random numbers, and against the loss."""

import numpy as np
import pytest
from numpy.random import PCG64, Generator, SeedSequence
from scipy.special import erf
from scipy.stats import norm

from meanfield.families.contrastive.sgd.simulation import simulate_sgd
from tests.example_problems import THREE_POINT, feature, features, gaussian, make_problem

SIGMA = {
    "linear": (lambda z: z, np.ones_like),
    "quadratic": (lambda z: z**2, lambda z: 2 * z),
    "erf": (erf, lambda z: 2 / np.sqrt(np.pi) * np.exp(-(z**2))),
    "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
}
PHI = {"none": np.zeros_like, "l2": lambda w: w, "l1": np.sign, "quartic": lambda w: w**3}
SKEWED = '{ law = "discrete", values = [-1.0, 2.0], probabilities = [0.6666666666666667, 0.33333333333333333] }'
N, STEPS = 8, 4
EVERY_STEP = (
    f"time = {{ stop = {STEPS / N}, outputs = {STEPS + 1} }}",
    f"particles = {{ dimension = {N}, replicas = 2, snapshots = {[k / N for k in range(STEPS + 1)]} }}",
    'model = { activation = "tanh", learning_rate = 0.8, batch_size = 3 }',
)
TWO = features(feature(0.5, SKEWED), feature(-0.4, THREE_POINT, "rademacher"))
NOISES = {
    "independent": "augmentation.variance = [0.4, 0.1]",
    "correlated": "augmentation = { variance = [0.4, 0.1], correlation = 0.6 }",
    "opposite": "augmentation = { variance = [0.3, 0.3], correlation = -1.0 }",
    "one view": "augmentation.variance = [0.0, 0.5]",
}


class Samples:
    """The views of all samples, from the streams that the package draws from."""

    def __init__(self, problem, U, replica):
        self.problem, self.U = problem, U
        _, self.noise, *self.hidden = (
            Generator(PCG64(SeedSequence(problem.particles.seed, spawn_key=(replica, stream))))
            for stream in range(2 + len(problem.features))
        )

    def draw(self):
        """Both views of the samples of one step, each of shape (m, N)."""
        m = self.problem.model.batch_size
        laws = [feature.hidden for feature in self.problem.features]
        c = np.concatenate([law.sample(rng, (1, m))[0] for law, rng in zip(laws, self.hidden, strict=True)], axis=1)
        views = [self._one_sample(row) for row in c]
        return np.array([x1 for x1, _ in views]), np.array([x2 for _, x2 in views])

    def _one_sample(self, c):
        normal = self.noise.standard_normal(N)
        background = normal - self.U @ (self.U.T @ normal) / N
        x = self.U @ c / np.sqrt(N) + background
        if self.problem.augmentation is None:
            return x, x
        v1, v2 = self.problem.augmentation.variance
        rho = self.problem.augmentation.correlation
        first, second = self.noise.standard_normal((N, 2)).T
        return x + np.sqrt(v1) * first, x + np.sqrt(v2) * (rho * first + np.sqrt(1 - rho**2) * second)


def population_means(problem, U, w):
    """<sigma(Theta_l)> by brute force over the atoms of c and a fine grid of the Gaussian rest."""
    sigma, q = SIGMA[problem.model.activation][0], U.T @ w / N
    e = np.linspace(-10, 10, 4001)
    weight = norm.pdf(e) / norm.pdf(e).sum()
    atoms = [f.hidden.atoms for f in problem.features]
    centres, probability = np.zeros(1), np.ones(1)
    for (values, p), overlap in zip(atoms, q, strict=True):
        centres = np.add.outer(centres, overlap * values[:, 0]).ravel()
        probability = np.multiply.outer(probability, p).ravel()
    variances = problem.augmentation.variance if problem.augmentation else (0.0, 0.0)
    scales = [np.sqrt(1 - q @ q + v) for v in variances]
    return [probability @ sigma(centres[:, None] + scale * e) @ weight for scale in scales]


def centres_of_outputs(problem, U, w, y1, y2):
    if problem.model.centering == "batch":
        return y1.mean(), y2.mean()
    return population_means(problem, U, w) if problem.model.centering == "population" else (0.0, 0.0)


def on_sphere(w):
    return np.sqrt(N) * w / np.linalg.norm(w)


def pull(problem, w):
    return problem.model.learning_rate / N * problem.prior.strength * PHI[problem.prior.name](w)


def sgd_step(problem, U, w, x1, x2):
    sigma, slope = SIGMA[problem.model.activation]
    z1, z2 = x1 @ w / np.sqrt(N), x2 @ w / np.sqrt(N)
    y1, y2 = sigma(z1), sigma(z2)
    mean1, mean2 = centres_of_outputs(problem, U, w, y1, y2)
    alpha, beta = (y2 - mean2) * slope(z1), (y1 - mean1) * slope(z2)
    scale = problem.model.learning_rate / (problem.model.batch_size * np.sqrt(N))
    return on_sphere(w + scale * (alpha @ x1 + beta @ x2) - pull(problem, w))


def loss_step(problem, U, w, x1, x2):
    """w - tau grad F - (tau/N) phi, with the gradient of the loss F by complex steps: no formula for it is used."""
    sigma = SIGMA[problem.model.activation][0]

    def outputs(weights):
        return sigma(x1 @ weights / np.sqrt(N)), sigma(x2 @ weights / np.sqrt(N))

    fixed = centres_of_outputs(problem, U, w, *outputs(w))

    def loss(weights):
        y1, y2 = outputs(weights)
        # the mean of the batch moves with the weights, the mean of the population does not
        mean1, mean2 = (y1.mean(), y2.mean()) if problem.model.centering == "batch" else fixed
        return -np.mean((y1 - mean1) * (y2 - mean2))

    step = 1e-30
    gradient = np.array([loss(w + 1j * step * axis).imag / step for axis in np.eye(N)])
    return on_sphere(w - problem.model.learning_rate * gradient - pull(problem, w))


def check(problem, take_step, rounding=1e-10):
    run = simulate_sgd(problem)
    assert run.status == "complete"
    for replica in range(problem.particles.replicas):
        U, w = run.U.values[replica], run.weights.values[replica, 0]
        samples = Samples(problem, U, replica)
        for after in run.weights.values[replica, 1:]:
            moved = take_step(problem, U, w, *samples.draw())
            assert np.abs(moved - w).max() > 1e-3
            assert after == pytest.approx(moved, abs=rounding)  # amplified by a few steps of order one
            w = after
    overlap = np.einsum("rni,rn->ri", run.U, run.weights[:, -1]) / N
    assert run.q.values[:, -1] == pytest.approx(overlap, abs=1e-12)  # q = U^T w/N: rounding
    work = problem.prior.strength * (run.weights * PHI[problem.prior.name](run.weights.values)).mean("coordinate")
    assert run.r.values == pytest.approx(work.values, abs=1e-12)  # r = w.phi(w)/N: rounding


STEPPERS = pytest.mark.parametrize("take_step", [sgd_step, loss_step])


@STEPPERS
@pytest.mark.parametrize("noise", [None, *NOISES])
@pytest.mark.parametrize("centering", ["none", "population", "batch"])
def test_every_centring_and_noise(take_step, centering, noise):
    check(make_problem(TWO, *EVERY_STEP, f'model.centering = "{centering}"', NOISES.get(noise, "")), take_step)


@STEPPERS
@pytest.mark.parametrize("prior", PHI)
def test_every_prior(take_step, prior):
    check(make_problem(TWO, *EVERY_STEP, f'prior = {{ name = "{prior}", strength = 0.7 }}'), take_step)


@STEPPERS
@pytest.mark.parametrize("activation", SIGMA)
def test_every_activation(take_step, activation):
    lines = (f'model = {{ activation = "{activation}", learning_rate = 0.2, centering = "population" }}',)
    check(make_problem(TWO, *EVERY_STEP, *lines), take_step)


@STEPPERS
@pytest.mark.parametrize(
    "hidden",
    [features(feature(0.5, gaussian(1.3))), features(feature(0.2), feature(0.3, SKEWED), feature(0.1, gaussian(1.3)))],
    ids=["gaussian", "three"],
)
def test_other_features(take_step, hidden):
    check(make_problem(hidden, *EVERY_STEP), take_step)


def test_population_mean_is_not_zero_here():
    """So that the tests above see what population centring subtracts."""
    problem = make_problem(TWO, *EVERY_STEP)
    U = np.sqrt(N) * np.eye(N)[:, :2]
    w = U @ problem.initial_overlap + np.sqrt(N * (1 - 0.41)) * np.eye(N)[2]
    assert abs(population_means(problem, U, w)[0]) > 1e-2


def test_steps_between_outputs_do_not_change_the_run():
    """More outputs: the same path, seen more often; also where t N is no whole number."""
    coarse, fine = (
        simulate_sgd(make_problem(TWO, f"time = {{ stop = 0.6, outputs = {n} }}", "particles.dimension = 21"))
        for n in (2, 7)
    )
    assert np.array_equal(coarse.weights[:, -1], fine.weights[:, -1])


def test_a_run_that_overflows_fails_and_says_when(monkeypatch):
    monkeypatch.setattr("meanfield.ingredients.priors.PriorSettings.check_pull", lambda *_: None)
    problem = make_problem(*EVERY_STEP, 'prior = { name = "quartic", strength = 1e200 }')
    run = simulate_sgd(problem)
    assert run.status.startswith("failed: at t = 0")
    assert "no longer finite" in run.status
    assert "prior.strength" in run.status
    assert np.isfinite(run.q.values[:, 0]).all()
    assert np.isnan(run.q.values[:, -1]).all()
    assert np.isnan(run.weights.values[:, -1]).all()
