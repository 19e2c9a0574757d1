"""Order parameters from weights against samples of SGD's own inputs."""

import numpy as np
import pytest
from scipy.special import erf

from meanfield.ensembles.streams import stream_key
from meanfield.families.hidden_manifold.particles.fresh_samples import count_fresh
from meanfield.families.hidden_manifold.particles.latents import draw_latents
from meanfield.families.hidden_manifold.particles.measurement import Fields, gaussian_errors
from meanfield.families.hidden_manifold.particles.steppers import Plain
from meanfield.families.hidden_manifold.particles.uneven_inputs import input_moments
from meanfield.ingredients.nonlinearities import make_nonlinearity
from meanfield.numerics.compiled.matrix_products import multiply, tiles_for
from tests.families.hidden_manifold.particles.problems import MEANS, PER_COORDINATE, SCALES, make_problem
from tests.families.hidden_manifold.particles.test_plain import FUNCTIONS, INPUTS

SAMPLES = 6000
RELU = ('student.activation = "relu"', 'teacher.activation = "relu"')
NOT_STANDARDISED = (
    "inputs.centered = false",
    'inputs.components_drawn = "coordinate"',
    "inputs.components = [{ weight = 0.5, mean = -0.4 }, { weight = 0.5, mean = 1.4 }]",
)
CASES = {
    "one Gaussian": (),
    "means": (MEANS,),
    "scales, ReLU units": (SCALES, *RELU),
    "means, ReLU units and inputs": (MEANS, *RELU, 'inputs.nonlinearity = "relu"'),
    "inputs with a mean": ('inputs.nonlinearity = "relu"', "inputs.centered = false"),
    "scales, inputs with means": ('inputs.nonlinearity = "relu"', SCALES),
    "per coordinate": PER_COORDINATE,
    "latents with a mean": NOT_STANDARDISED,
}


def fields(plain, problem, samples):
    """Fields of students and teachers at samples that have nothing to do with those of the run."""
    D, N = len(plain._teacher), plain._W.shape[1]
    tiles, nu = tiles_for(samples, D), np.empty((samples, problem.teachers))
    draw_latents(plain._mixture, plain._factors, stream_key(99), 0, 0, samples, tiles, nu)
    U = np.empty((len(tiles) * tiles.shape[2], plain._inputs.panels.shape[0] * plain._inputs.panels.shape[2]))
    multiply(plain._inputs.panels, tiles, samples, U)
    x = INPUTS[problem.inputs.nonlinearity](U[:samples, :N]) - problem.inputs.shift
    return x @ plain._W.T / np.sqrt(N), nu


@pytest.mark.parametrize("lines", CASES.values(), ids=CASES)
def test_errors_and_covariances_are_those_of_samples(lines):
    """Within 4.5 standard errors of the samples, 7e-6 of false alarms each, and 1/N for the law at finite N.

    The error is that of other samples of the run's own, with a standard error of its own, and without 1/N.
    """
    problem = make_problem("particles.dimension = 600", "particles.seed = 1", *lines)
    plain = Plain(problem, range(1))
    plain.advance(0, 600)
    rows = plain.rows
    lam, nu = fields(plain, problem, SAMPLES)
    g, _ = FUNCTIONS[problem.student.activation]
    error = 0.5 * (g(lam) @ plain._v - g(nu) @ np.array(problem.teacher.output_weights)) ** 2
    share = 2 / 600  # of the square of the largest field or error

    def close(samples, value):
        deviation = samples.std() / np.sqrt(len(samples))
        allowed = 4.5 * deviation + share * np.abs(samples).mean()  # scatter of the samples, and 1/N
        assert samples.mean() == pytest.approx(value, abs=allowed)

    (measured,), (own,) = rows["generalisation_error"], rows["generalisation_error_error"]
    assert own == pytest.approx(error.std() / np.sqrt(count_fresh(problem)), rel=0.4)  # of 1000 squares of heavy tails
    assert error.mean() == pytest.approx(measured, abs=4.5 * np.hypot(own, error.std() / np.sqrt(SAMPLES)))  # see above
    weights = [weight for weight, _ in problem.inputs.gaussians]
    mean = np.array(weights) @ rows["field_mean"][0]
    for k in range(2):
        close(lam[:, k], mean[k])
    if len(weights) == 1:
        for k in range(2):
            for j in range(2):
                close((lam[:, k] - mean[k]) * (lam[:, j] - mean[j]), rows["Q"][0, k, j])
                close((lam[:, k] - mean[k]) * (nu[:, j] - nu[:, j].mean()), rows["R"][0, k, j])


def test_the_error_is_measured_and_not_that_of_the_limit():
    """Where single inputs have means the limit is wrong about the error, and about nothing that it is made from."""
    lines = ('teacher.activation = "relu"', 'inputs.nonlinearity = "quadratic"', "inputs.aspect_ratio = 1.5")
    problem = make_problem("particles.dimension = 200", 'particles.column_lengths = "random"', *lines)
    plain = Plain(problem, range(1))
    plain.advance(0, 300)
    rows = plain.rows
    lam, nu = fields(plain, problem, SAMPLES)
    error = 0.5 * (FUNCTIONS["scaled_erf"][0](lam).sum(axis=1) - np.maximum(nu, 0).sum(axis=1)) ** 2
    deviation = error.std() / np.sqrt(SAMPLES)
    (measured,), (own,) = rows["generalisation_error"], rows["generalisation_error_error"]
    assert error.mean() == pytest.approx(measured, abs=4.5 * np.hypot(own, deviation))  # 7e-6 of false alarms
    law = Fields(rows["Q"][:, None], rows["R"][:, None], rows["field_mean"], np.zeros((1, 1, 2)))
    of_the_limit = gaussian_errors(problem, plain._v[None], law)["generalisation_error"][0]
    assert abs(error.mean() - of_the_limit) > 5 * deviation


def test_moments_of_each_input_are_those_of_its_law():
    centres, s = np.array([-30.0, -0.7, 0.0, 2.0]), 1.7
    found = input_moments(make_nonlinearity("sign"), centres, s)
    slope = np.sqrt(2 / np.pi) * np.exp(-0.5 * (centres / s) ** 2)
    assert found.mean == pytest.approx(erf(centres / (s * np.sqrt(2))), abs=1e-12)  # accuracy of the panels
    assert found.slope == pytest.approx(slope, abs=1e-12)  # the same
    assert found.square == pytest.approx(1, abs=1e-12)  # the same
    for name, scale in (("tanh", 1.0), ("scaled_erf", 6.0), ("relu", 0.3)):
        function = make_nonlinearity(name)
        moments, single = input_moments(function, np.zeros(1), scale), function.moments(scale)
        for what in ("mean", "slope", "square"):
            one, other = getattr(moments, what)[0], getattr(single, what)
            assert one == pytest.approx(other, abs=1e-9)  # panels of 8 nodes: 1e-10 each of several
