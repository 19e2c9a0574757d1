"""Equations that contrastive problems print, evaluated by SymPy, against closures, steps and fields."""

import numpy as np
import pytest
import sympy as sp

from meanfield.explanation.equations import Equation, equations_of
from meanfield.explanation.formulas import latex_of
from meanfield.explanation.weight_equations import FORCE
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.limit import coefficients
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.ingredients.activations import ACTIVATIONS, make_activation
from meanfield.ingredients.formulas import ACTIVATIONS as FORMULAS
from meanfield.ingredients.formulas import PRIORS as PRIOR_FORMULAS
from meanfield.ingredients.priors import PRIORS
from meanfield.problems.problem_keys import with_values
from tests.example_problems import make_problem
from tests.families.contrastive.sgd.test_plain import EVERY_STEP, NOISES, TWO, N, centres_of_outputs, check, on_sphere
from tests.oracles.plain_steps import HIDDEN
from tests.oracles.plain_steps import make_problem as problem_of
from tests.printed_equations import evaluate, lines_of, section, unsaid

ROUNDING = 1e-12
"""Largest error of a formula, relative to the largest value: sums of some ten terms in double precision."""

LIMIT = "Drift gain"


def points(features, count=100, seed=0):
    """Overlaps within the ball."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(count, features))
    return directions / np.linalg.norm(directions, axis=1)[:, None] * rng.uniform(0, 0.98, (count, 1))


def close(found, right):
    return np.all(np.abs(found - right) <= ROUNDING * np.abs(right).max(axis=0))


def closed(problem, qs):
    """g and Lambda in closed form at many points, shape (points, features + 1)."""
    features = qs.shape[1]
    indices = [""] if features == 1 else [f"_{k + 1}" for k in range(features)]
    lines = [line for line in section(problem, LIMIT) if isinstance(line, Equation) and line.closed]
    found = evaluate(lines, {f"q{index}": q for index, q in zip(indices, qs.T, strict=True)})
    return np.array([found[name][0] for name in (*(f"g{index}" for index in indices), "Lambda")]).T


def of_the_code(closure, qs):
    return np.array([np.append(*closure(q)) for q in qs])


@pytest.mark.parametrize("centering", ["none", "population", "batch"])
@pytest.mark.parametrize("noise", ["none", "unequal", "opposite"])
@pytest.mark.parametrize("hidden", [("asymmetric",), ("laplace", "shifted")], ids="-".join)
def test_closed_forms_are_the_closure(hidden, noise, centering):
    problem = problem_of("quadratic", hidden, noise, centering)
    qs = points(len(hidden))
    assert close(closed(problem, qs), of_the_code(Closure(problem), qs))


@pytest.mark.parametrize("hidden", HIDDEN)
def test_closed_forms_take_every_law(hidden):
    problem = problem_of("quadratic", (hidden,), "correlated")
    qs = points(1, 5)
    assert close(closed(problem, qs), of_the_code(Closure(problem, tabulated=False), qs))


def samples_of(problem, nodes=40):
    """Nodes of c, e and the noise of two views, with their weights: exact for polynomials of degree 2 nodes - 1."""
    x, weight = np.polynomial.hermite_e.hermegauss(nodes)
    law, noisy = problem.features[0].hidden, problem.augmentation is not None
    probability, mean, variance = law.components(8.0)
    views = [(x, weight / weight.sum())] * (2 if noisy else 0)
    axes = [(x, weight / weight.sum()), (np.arange(len(mean)), probability), (x, weight / weight.sum()), *views]
    grids = np.meshgrid(*(nodes for nodes, _ in axes), indexing="ij")
    weights = np.ones(1)
    for _, each in axes:
        weights = np.multiply.outer(weights, each)
    z, component, e, *noise = (grid.ravel() for grid in grids)
    c = mean[component, 0] + np.sqrt(variance[component, 0]) * z
    zeta = np.linalg.cholesky(problem.noise_covariance + 1e-300 * np.eye(2)) @ noise if noisy else np.zeros((2, 1))
    return {"c": c, "e": e, "zeta_1": zeta[0], "zeta_2": zeta[1]}, weights.ravel()


def averaged(problem, qs, nodes, names=("g", "Lambda"), *titles):
    """g and Lambda, or others, as averages over nodes, at many overlaps with one feature, shape (points, names)."""
    samples, weights = samples_of(problem, nodes)

    def average(values):
        return (np.broadcast_to(values, (len(qs), weights.size)) @ weights)[:, None]

    activation = make_activation(problem.model.activation)
    functions = {"average_of": average, "sigma": activation.values, "slope": activation.slopes}
    lines = [line for title in (LIMIT, *titles) for line in section(problem, title)]
    lines = [line for line in lines if not (isinstance(line, Equation) and line.closed)]
    found = evaluate(lines, samples | {"q": qs}, functions)
    return np.hstack([found[name][0] for name in names])


@pytest.mark.parametrize("centering", ["none", "population", "batch"])
@pytest.mark.parametrize("noise", ["none", "unequal"])
def test_averages_are_the_closure(noise, centering):
    problem = problem_of("quadratic", ("asymmetric",), noise, centering)
    found, qs = averaged(problem, points(1), 8), points(1)
    assert close(found, of_the_code(Closure(problem), qs))


@pytest.mark.parametrize("centering", ["none", "batch"])
@pytest.mark.parametrize("noise", ["none", "unequal"])
def test_weights_with_a_velocity_move_along_themselves_as_in_the_code(noise, centering):
    problem = with_values(problem_of("quadratic", ("asymmetric",), noise, centering), {"model.momentum_rate": 2.0})
    qs, closure, one = points(1, 20), ChannelClosure(problem), np.eye(1)
    right = [coefficients(closure(q[:, None], one), q[:, None], one, problem.model.rate).of_weights[0] for q in qs]
    assert close(averaged(problem, qs, 8, ["gamma_w"], "Weights and velocities"), np.array(right))


@pytest.mark.parametrize("activation", ["tanh", "gelu", "erf"])
def test_averages_of_other_activations(activation):
    problem = problem_of(activation, ("mixture",))
    found, qs = averaged(problem, points(1, 5), 200), points(1, 5)
    assert close(found, of_the_code(Closure(problem, tabulated=False), qs))  # 200 nodes resolve them to rounding


@pytest.mark.parametrize("hidden", [("three_point",), ("asymmetric", "gaussian")], ids="-".join)
def test_the_equation_of_the_overlaps_is_the_field(hidden):
    problem = problem_of("quadratic", hidden)
    field, lines = VectorField(problem), section(problem, "Order parameters")
    one = len(hidden) == 1
    for q in points(len(hidden)):
        g, Lambda = field.closure(q)
        values = {"q": q[0] if one else q, "g": g[0] if one else g, "Lambda": Lambda}
        (found,) = evaluate(lines, values).values()
        assert np.allclose(found, field(q), rtol=0, atol=1e-14)  # a rounding of numbers below 1


def printed_step(problem, U, w, x1, x2):
    """A step of SGD as the problem prints it, with the means of the samples themselves."""
    lines = section(problem, "Step")
    functions = {}
    evaluate(lines_of(lines, "sigma", "slope", "phi"), {}, functions)
    z1, z2 = x1 @ w / np.sqrt(N), x2 @ w / np.sqrt(N)
    mean1, mean2 = centres_of_outputs(problem, U, w, functions["sigma"](z1), functions["sigma"](z2))
    values = {"z": z1, "z_1": z1, "z_2": z2, "ybar": mean1, "ybar_1": mean1, "ybar_2": mean2}
    gains = evaluate(lines_of(lines, "alpha", "beta"), values, functions)
    counted = {name: np.append(0.0, gain) for name, (gain,) in gains.items()}  # samples count from 1
    counted |= {name: np.vstack([0 * w, x]) for name, x in (("x", x1), ("x_1", x1), ("x_2", x2))}
    return on_sphere(evaluate(lines_of(lines, r"\tilde w"), counted | {"w": w, "N": N}, functions)[r"\tilde w"][0])


@pytest.mark.parametrize("noise", [None, *NOISES])
@pytest.mark.parametrize("centering", ["none", "population", "batch"])
def test_the_step_is_that_of_sgd(noise, centering):
    lines = TWO, *EVERY_STEP, f'model.centering = "{centering}"', NOISES.get(noise, "")
    check(make_problem(*lines, 'prior = { name = "l1", strength = 0.7 }'), printed_step, ROUNDING)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_what_they_print(name):
    x = np.random.default_rng(0).normal(0.0, 3.0, 100)
    functions = {}
    evaluate(section(problem_of(name), "Step")[1:3], {}, functions)
    slopes, known = np.broadcast_to(functions["slope"](x), x.shape), make_activation(name)
    for found, right in ((functions["sigma"](x), known.values(x)), (slopes, known.slopes(x))):
        np.testing.assert_allclose(found, right, rtol=2e-15, atol=2e-15)  # some roundings
    assert set(FORMULAS) == set(ACTIVATIONS)


@pytest.mark.parametrize("name", PRIORS)
def test_forces_are_what_they_print(name):
    w = np.random.default_rng(0).normal(0.0, 2.0, 100)
    problem = problem_of("quadratic", prior={"name": name, "strength": 0.3})
    functions = {}
    evaluate(section(problem, "Step")[3:4], {}, functions)
    if name != "none":
        assert functions["phi"](w) == pytest.approx(problem.prior.force(w), rel=1e-13)  # x^3 - x cancels near its zeros
    assert set(PRIOR_FORMULAS) == set(PRIORS)


GAMMA = sp.Function("Gamma")(*sp.symbols("w u", real=True))


@pytest.mark.parametrize("prior", ["none", "l2"])
def test_densities_that_are_gaussian_move_as_their_overlap_does_in_the_code(prior):
    """Of P(w|u) = N(q u, 1 - q^2), which stays of that form, the equation of P is dP/dq times the velocity of q."""
    problem = problem_of("quadratic", ("asymmetric",), prior={"name": prior, "strength": 0.3})
    w, u, q = sp.symbols("w u q", real=True)
    lines, gauss = section(problem, "Density"), sp.exp(-((w - q * u) ** 2) / (2 - 2 * q**2)) / sp.sqrt(1 - q**2)
    (drift,), (G,) = lines_of(lines, latex_of(GAMMA)), lines_of(lines, "G")
    (density,) = lines_of(lines, r"\frac{\partial P}{\partial t}")
    force = 0.3 * w if prior == "l2" else 0
    drift = drift.right.subs({FORCE(w): force, G.left: G.right})
    known = density.right.replace(sp.Function("P"), lambda *_: gauss).replace(sp.Function("Gamma"), lambda *_: drift)
    names = sp.symbols("w u q g Lambda r", real=True)
    printed, by_q = sp.lambdify(names, known.doit()), sp.lambdify(names[:3], sp.diff(gauss, q))
    rng, field = np.random.default_rng(0), VectorField(problem)
    for at in points(1):
        (g,), Lambda = field.closure(at)
        place = *rng.normal(size=2), at[0]
        wanted = by_q(*place) * field(at)[0]
        # rounding of second derivatives, which are some 1/(1 - q^2) = 25 times as large
        assert printed(*place, g, Lambda, 0.3) == pytest.approx(wanted, rel=1e-12, abs=1e-14)  # rounding, as above


@pytest.mark.parametrize("prior", ["none", "l2", "l1"])
def test_the_drift_keeps_the_norm_and_moves_the_overlap(prior):
    """d E[w^2]/dt = 2 E[w Gamma] + Lambda = 0 and dq/dt = E[u Gamma], whatever the weights and coordinates are."""
    problem = problem_of("quadratic", prior={"name": prior, "strength": 0.3})
    rng = np.random.default_rng(0)
    w, u = rng.normal(size=(2, 100))
    w, u = w / np.sqrt((w**2).mean()), u / np.sqrt((u**2).mean())
    pull = problem.prior.force(w)
    q, r = (u * w).mean(), (w * pull).mean()
    g, Lambda = Closure(problem, tabulated=False)(np.array([q]))
    functions = {"phi": lambda _: pull, "expectation": lambda values: values.mean()}
    values = {"w": w, "u": u, "q": q, "r": r, "g": g[0], "Lambda": Lambda}
    lines = section(problem, "Density")
    values |= {"G": evaluate(lines_of(lines, "G"), values)["G"][0]}
    (drift,) = evaluate(lines_of(lines, latex_of(GAMMA)), values, functions)[latex_of(GAMMA)]
    assert 2 * (w * drift).mean() + Lambda == pytest.approx(0.0, abs=1e-14)  # rounding
    ((velocity,),) = evaluate(section(problem, "Order"), values, functions).values()
    assert velocity == pytest.approx((u * drift).mean(), abs=1e-14)  # rounding of means
    assert drift + problem.model.rate * pull + u * g == pytest.approx(values["G"] * w, abs=1e-14)  # rounding


def test_symbols_of_a_prior_and_a_penalty_differ():
    prior = 'prior = { name = "smooth_l1", strength = 0.3, parameters = { width = 0.2 } }'
    penalty = 'decorrelation = { penalty = "smooth_absolute", strength = 0.1, parameters = { width = 0.4 } }'
    several = "model = { channels = 2, initial_channel_overlap = 0.1 }", TWO.replace("0.5", "[0.5, 0.1]")
    problem = make_problem(several[0], several[1].replace("-0.4", "[-0.4, 0.2]"), penalty, prior)
    rows = {symbol: key for symbol, key, _ in equations_of(problem).symbols}
    assert rows[r"\lambda"] == "prior.strength"
    assert rows[r"\lambda_{\psi}"] == "decorrelation.strength"
    assert not unsaid(problem)


def test_every_number_has_a_row():
    noise = "augmentation = { variance = [0.4, 0.1], correlation = 0.6 }"
    prior = 'prior = { name = "elastic_net", strength = 0.3, parameters = { ratio = 0.2 } }'
    model = "model = { momentum_rate = 0.5, average_rate = 2.0 }"
    rate = 'model.learning_rate = { schedule = "linear", start = 0.1, end = 0.0, duration = 5.0 }'
    assert not unsaid(make_problem(noise, prior, model))
    several = (
        "model = { channels = 2, initial_channel_overlap = 0.1, momentum = 0.5 }",
        TWO.replace("0.5", "[0.5, 0.1]"),
    )
    penalty = 'decorrelation = { penalty = "smooth_absolute", strength = 0.2, parameters = { width = 0.3 } }'
    assert not unsaid(make_problem(several[0], several[1].replace("-0.4", "[-0.4, 0.2]"), penalty, noise, rate))
