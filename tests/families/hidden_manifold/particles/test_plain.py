"""Plain SGD against its definition in NumPy, from the same random numbers, and its law of inputs."""

import numpy as np
import pytest
from scipy.special import erf

from meanfield.ensembles.streams import NORMALS, UNIFORMS, fill_normals, fill_uniforms, stream_key
from meanfield.families.hidden_manifold.particles.latents import draw_latents
from meanfield.families.hidden_manifold.particles.networks import LABELS
from meanfield.families.hidden_manifold.particles.plain import SAMPLES
from meanfield.families.hidden_manifold.particles.steppers import Plain
from meanfield.numerics.compiled.matrix_products import VECTORS_PER_TILE, tiles_for, unpack
from tests.families.hidden_manifold.particles.problems import (
    BOTH_LAYERS,
    MEANS,
    PER_COORDINATE,
    SCALES,
    STRONG,
    TWO_BLOCKS,
    make_problem,
)

ROOT = np.sqrt(2.0)
FUNCTIONS = {
    "scaled_erf": (lambda x: erf(x / ROOT), lambda x: np.exp(-0.5 * x * x) * np.sqrt(2 / np.pi)),
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
}
INPUTS = {
    "sign": np.sign,
    "step": lambda u: np.heaviside(u, 0.5),
    "tanh": np.tanh,
    "relu": lambda u: np.maximum(u, 0),
    "quadratic": np.square,
}
RELU = ('student.activation = "relu"', 'teacher.activation = "relu"')
STEPS = 120  # more than two runs of `SAMPLES`


def numbers(fill, seed, replica, purpose, first, count):
    """Numbers `first`, ... of a stream, as the definition of the law of latents takes them."""
    out = np.empty(count + count % 2)
    fill(stream_key(seed), replica, purpose, first * out.size, out)
    return out[:count]


def sample_of(problem, plain, replica, sample):
    """Inputs, fields of teachers and noise of the label of a sample, with the features of a stepper."""
    inputs, seed = problem.inputs, problem.particles.seed
    N, D = plain._W.shape[1], len(plain._teacher)
    F = np.sqrt(D) * unpack(plain._inputs.panels, N)
    components, per_coordinate = inputs.mixture, inputs.components_drawn == "coordinate"
    weights = np.cumsum([component.weight for component in components])
    z = numbers(fill_normals, seed, replica, NORMALS, sample, D)
    chances = numbers(fill_uniforms, seed, replica, UNIFORMS, sample, D if per_coordinate else 2)
    q = np.searchsorted(weights[:-1], chances if per_coordinate else chances[:1])
    scale = np.array([component.scale for component in components])[q]
    number = np.array([0 if isinstance(c.mean, tuple) else c.mean for c in components])[q]
    C = plain._mean[q, np.arange(D)] + number + scale * z
    x = INPUTS[inputs.nonlinearity](F.T @ C / np.sqrt(D)) - inputs.shift
    return x, plain._teacher.T @ C / np.sqrt(D), numbers(fill_normals, seed, replica, LABELS, sample, 2)[0]


def definition(problem, plain, replica, steps):
    """Section 1 of the theory, line by line, with the features, teacher and start of a stepper."""
    training, N = problem.training, plain._W.shape[1]
    (g, slope), (gt, _) = (FUNCTIONS[network.activation] for network in (problem.student, problem.teacher))
    W, v, vt = plain._W.copy(), plain._v.copy(), np.array(problem.teacher.output_weights)
    batch = training.batch_size
    for k in range(steps):
        sums = [0.0, 0.0]
        for sample in range(k * batch, (k + 1) * batch):
            x, nu, noise = sample_of(problem, plain, replica, sample)
            lam = W @ x / np.sqrt(N)
            error = v @ g(lam) - vt @ gt(nu) - np.sqrt(training.label_noise) * noise
            sums[0] = sums[0] + np.outer(v * error * slope(lam), x)
            sums[1] = sums[1] + error * g(lam)
        rates = training.learning_rate, training.second_layer
        kept = [1.0 - rate * training.weight_decay / N for rate in rates]
        W, v = (
            kept[0] * W - rates[0] / np.sqrt(N) / batch * sums[0],
            kept[1] * v - rates[1] / N / batch * sums[1],
        )
    return W, v


@pytest.mark.parametrize(
    "lines",
    [
        (STRONG,),
        (STRONG, *RELU, 'inputs.nonlinearity = "tanh"', TWO_BLOCKS, "particles.dimension = 50"),
        (BOTH_LAYERS, MEANS, "particles.dimension = 102"),  # D = 51 is odd
        (STRONG, SCALES, 'inputs.nonlinearity = "relu"'),  # centred
        (STRONG, *PER_COORDINATE, "inputs.aspect_ratio = 1.5", "particles.dimension = 33"),
        (STRONG, "training = { batch_size = 7, label_noise = 0.5, weight_decay = 20.0 }"),
    ],
    ids=["one Gaussian", "ReLU units", "means", "scales, ReLU inputs", "per coordinate", "batches"],
)
def test_steps_are_those_of_the_definition(lines):
    problem = make_problem(*lines, "particles.seed = 3")
    plain = Plain(problem, range(2, 3))
    W, v = definition(problem, plain, 2, STEPS)
    before = plain._W.copy()
    plain.advance(0, STEPS)
    assert plain.reached.tolist() == [STEPS]
    assert np.abs(plain._W - before).max() > 0.1
    # Rounding, amplified over the steps: of double precision where signs alone count, of products in single else.
    tolerance = 1e-9 if problem.inputs.nonlinearity == "sign" else 2e-6
    assert np.allclose(plain._W, W, rtol=tolerance, atol=tolerance)
    assert plain._v == pytest.approx(v, rel=tolerance)


@pytest.mark.parametrize("nonlinearity", ["sign", "step"])
def test_signs_of_products_are_those_of_double_precision(nonlinearity):
    """With features of three digits in place of seven, too; a single sign that differs is noticed."""
    problem = make_problem(STRONG, SCALES, f'inputs.nonlinearity = "{nonlinearity}"', "particles.dimension = 600")
    quick, coarse, careless = (Plain(problem, range(1)) for _ in range(3))
    single = quick._inputs.single
    rounded = np.round(single.panels * 2**10) / np.float32(2**10)  # off by 2^-11 at most, each of 300 entries
    few_digits = single._replace(panels=rounded, error=single.error + np.sqrt(300) * 2.0**-11)
    coarse._inputs = quick._inputs._replace(single=few_digits)
    careless._inputs = quick._inputs._replace(single=few_digits._replace(error=0 * single.error))
    W, _ = definition(problem, quick, 0, 300)
    for run in (quick, coarse, careless):
        run.advance(0, 300)
    assert np.allclose(quick._W, W, rtol=1e-9, atol=1e-9)  # rounding, amplified over the steps
    assert np.array_equal(coarse._W, quick._W)
    assert not np.allclose(careless._W, W, rtol=1e-3, atol=1e-3)


def test_means_of_components_are_those_of_the_problem():
    problem = make_problem(MEANS)
    plain = Plain(problem, range(1))
    along = plain._mean @ plain._teacher / 10  # E[C].Wt/sqrt(D)
    coefficients = np.array([[2.0, 0.5], [-6 / 7, -1.5 / 7]])
    assert along == pytest.approx(coefficients, abs=1e-12)  # rounding; T is the identity
    squares = [4.25 + 2.25, (6 / 7) ** 2 + (1.5 / 7) ** 2]
    assert (plain._mean**2).sum(axis=1) == pytest.approx(squares, abs=1e-12)  # rounding of 50 squares


@pytest.mark.parametrize("lines", [(SCALES,), PER_COORDINATE], ids=["per sample", "per coordinate"])
def test_latents_have_the_weights_of_the_components(lines):
    """Shares and fourth moments of latents within four standard errors, which is .006 % of false alarms each."""
    problem = make_problem(*lines)
    plain, samples = Plain(problem, range(1)), 4000
    tiles, fields = tiles_for(samples, 100), np.empty((samples, 2))
    draw_latents(plain._mixture, plain._factors, stream_key(1), 0, 0, samples, tiles, fields)
    C = tiles.transpose(0, 2, 1).reshape(-1, 100)[:samples]
    assert fields == pytest.approx(C @ plain._teacher / 10, abs=1e-12)  # rounding of sums of 100
    components = problem.inputs.mixture
    weight, scale = (np.array([getattr(c, name) for c in components]) for name in ("weight", "scale"))
    mean = np.array([0 if isinstance(c.mean, tuple) else c.mean for c in components])
    moments = {2: mean**2 + scale**2, 4: mean**4 + 6 * mean**2 * scale**2 + 3 * scale**4}
    for power, expected in moments.items():
        per_sample = (C**power).mean(axis=1)  # independent
        deviation = per_sample.std() / np.sqrt(samples)
        assert per_sample.mean() == pytest.approx(weight @ expected, abs=4 * deviation)  # see above
    if len(lines) == 1:
        wide = (C**2).mean(axis=1) > 0.8  # between .16 and 1.84, 7 standard deviations from either
        assert wide.mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(samples))  # 4 errors of a share


@pytest.mark.parametrize("lines", [(MEANS,), PER_COORDINATE], ids=["per sample", "per coordinate"])
def test_numbers_do_not_depend_on_how_steps_are_cut(lines):
    problem = make_problem(STRONG, *lines)
    once, cut = (Plain(problem, range(1)) for _ in range(2))
    once.advance(0, 150)
    for first, last in ((0, 1), (1, 7), (7, 7 + SAMPLES), (7 + SAMPLES, 150)):
        cut.advance(first, last - first)
    assert np.array_equal(once._W, cut._W)
    assert np.array_equal(once._v, cut._v)
    assert SAMPLES % VECTORS_PER_TILE == 0


def test_a_blow_up_is_noticed_at_its_step():
    problem = make_problem("training.learning_rate = 20.0", *RELU, "particles.dimension = 40")
    once, cut = (Plain(problem, range(1)) for _ in range(2))
    once.advance(0, 4000)
    for first in range(0, 4000, 10):
        if cut.reached[0] < first:
            break
        cut.advance(first, 10)
    assert 0 < once.reached[0] < 4000
    assert once.reached[0] == cut.reached[0]
    assert all(np.all(np.isfinite(row)) for row in once.rows.values())
