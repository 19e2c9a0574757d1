"""Equations that problems of several channels print, evaluated by SymPy, against averages, steps and velocities."""

from itertools import product

import numpy as np
import pytest

from meanfield.explanation.equations import Equation
from meanfield.families.contrastive.channels.averages import exact_averages
from meanfield.families.contrastive.channels.closure import BatchAverages
from meanfield.families.contrastive.channels.field import velocity
from meanfield.families.contrastive.channels.limit import coefficients
from meanfield.families.contrastive.channels.one_sample import Rule, fill_nodes
from meanfield.families.contrastive.channels.polynomials import batch_terms
from meanfield.families.contrastive.channels.rules import batch_law_of
from meanfield.families.contrastive.channels.velocity import FieldWithVelocity
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.simulation import simulate_sgd
from meanfield.ingredients.activations import make_activation
from tests.example_problems import make_problem
from tests.families.contrastive.sgd.test_plain import EVERY_STEP, NOISES, TWO, N, Samples
from tests.printed_equations import counted, evaluate, lines_of, section

ROUNDING = 1e-12
"""Largest error of a formula, relative to the largest value: sums of some hundred terms in double precision."""

POINTS = 100

NOISE = {"variance": [0.3, 0.2], "correlation": -0.4}
LAWS = ([-1.0, 2.0], [0.7, 0.3]), ([-0.5, 1.5], [0.4, 0.6])


def problem_of(features=1, channels=2, strength=0.0, noise=None, activation="quadratic", centering="none", m=3, **rest):
    """Problem with two values of each hidden variable."""
    hidden = [{"law": "discrete", "values": x, "probabilities": p} for x, p in LAWS[:features]]
    model = {"activation": activation, "centering": centering, "learning_rate": 0.3, "batch_size": m}
    model |= {"channels": channels, **rest.pop("model", {})}
    start = [0.1] * channels
    given = {"decorrelation": {"strength": strength}, "time": {"stop": 1.0}, "model": model}
    given |= {"augmentation": noise} if noise else {}
    return Problem.model_validate(
        given | {"features": [{"hidden": h, "initial_overlap": start} for h in hidden]} | rest
    )


def overlaps(problem, count=POINTS, seed=0):
    """q and M of random vectors."""
    d1, d2 = len(problem.features), problem.model.channels
    w = np.random.default_rng(seed).normal(size=(count, 8, d2))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return np.ascontiguousarray(w[:, :d1]), w.swapaxes(1, 2) @ w


def close(found, right):
    return np.abs(found - right).max() <= ROUNDING * np.abs(right).max()


def rule_of(law, nodes):
    """Gauss-Hermite nodes in each direction, exact for polynomials of degree 2 nodes - 1."""
    x, weight = np.polynomial.hermite_e.hermegauss(nodes)
    points = np.array(list(product(x, repeat=law.directions))).T
    weights = np.prod(list(product(weight / weight.sum(), repeat=law.directions)), axis=1)
    return Rule(np.ascontiguousarray(points), weights, np.array([0, weights.size]))


def averages_by_code(problem, rule, q, M):
    """P, D and Lambda of the code, with one rule for a sample."""
    batch, (d1, d2) = batch_law_of(problem, False), q.shape[1:]
    strength = problem.decorrelation_strength
    terms = batch_terms(d2, batch.sample.views, batch.size, batch.by_batch, strength)
    found = np.array([exact_averages(batch, terms, rule, *each) for each in zip(q, M, strict=True)])
    P, D, Lambda = np.split(found.T, [d1 * d2, d1 * d2 + d2 * d2])
    tau = problem.model.learning_rate
    return P.reshape(d1, d2, -1), D.reshape(d2, d2, -1), tau**2 * Lambda.reshape(d2, d2, -1)


@pytest.mark.parametrize(
    ("features", "noise", "centering"),
    [
        (1, None, "none"),
        (1, NOISE, "batch"),
        (2, None, "population"),
        pytest.param(2, NOISE, "batch", marks=pytest.mark.slow),
    ],
)
def test_closed_forms_are_those_of_the_code(features, noise, centering):
    problem = problem_of(features, noise=noise, centering=centering)
    q, M = overlaps(problem)
    rule = rule_of(batch_law_of(problem, False).sample, 4)  # exact: Lambda has the degree 6
    P, D, Lambda = averages_by_code(problem, rule, q, M)
    lines = [line for line in section(problem, "Averages") if isinstance(line, Equation) and line.closed]
    first, second = [0, 1, 1], [1, 0, 1]  # pairs of channels
    values = {"M_{kl}": M.T[first, second]}
    for f in range(features):
        name = str(f + 1) if features > 1 else ""
        values |= {f"q_{{{name}k}}": q[:, f, first].T, f"q_{{{name}l}}": q[:, f, second].T}
    found = evaluate(lines, values)
    assert close(found["D[k, l]"][0], D[first, second])
    assert close(found["Lambda[k, l]"][0], Lambda[first, second])
    for f in range(features):
        assert close(found[f"P[{f + 1}, k]" if features > 1 else "P[k]"][0], P[f, first])


AVERAGES = [
    {"strength": 0.4, "m": 1, "features": 2},
    {"strength": 0.4, "m": 2, "centering": "batch"},
    {"strength": 0.4, "m": 2, "centering": "population", "activation": "tanh", "features": 2},
    {"strength": 0.4, "m": 1, "noise": NOISE},
    {"m": 2, "noise": NOISE, "centering": "batch"},
    {"strength": 0.4, "m": 1, "channels": 3, "activation": "tanh"},
]


@pytest.mark.parametrize("keys", AVERAGES, ids=lambda keys: "-".join(map(str, keys.values())))
def test_averages_over_all_batches_of_a_law_are_those_of_the_code(keys):
    """A sample is one of a few nodes, of which the code has moments and the equations all batches."""
    problem = problem_of(**keys)
    count = POINTS if problem.model.batch_size == 1 or not problem.augmentation else 10
    (q, M), batch = overlaps(problem, count), batch_law_of(problem, False)
    d1, d2, m, law = *q.shape[1:], problem.model.batch_size, batch.sample
    rule = rule_of(law, 2)
    right = averages_by_code(problem, rule, q, M)
    weight, theta, x = map(
        np.array, zip(*(fill_nodes(law, rule, *each) for each in zip(q, M, strict=True)), strict=True)
    )
    chosen = np.array(list(product(range(weight.shape[1]), repeat=m))).T  # sample of each batch
    chances = np.prod(weight[0][chosen], axis=0)
    activation = make_activation(problem.model.activation)
    functions = {"sigma": activation.values, "slope": activation.slopes, "average_of": lambda of: of @ chances}
    views = ("_1", "_2") if law.views == 2 else ("",)
    shown, values = {}, {}
    for view, inputs, own in zip(
        views, np.split(theta, law.views, axis=1), np.split(x, law.views, axis=1), strict=True
    ):
        z = inputs.swapaxes(0, 1)[:, :, chosen].swapaxes(1, 2)  # (channels, samples, points, batches)
        outputs = activation.values(z)
        means = outputs.mean(axis=1) if batch.by_batch else (outputs @ chances)[:, 0, :, None]
        values |= {f"z{view}": counted(z, "kb"), f"ybar{view}": counted(means, "k")}
        features = own.swapaxes(0, 1)[:, :, chosen[0]]
        shown |= {f"Theta{view}": counted(z[:, 0], "k"), "c" if not view else f"eta{view}": counted(features, "f")}
    if law.views == 2:
        shown["c"] = np.zeros((d1 + 1, count, len(chances)))  # the code has c + eta
    if d1 == 1:
        shown |= {name: of[1] for name, of in shown.items() if name[0] in "ce"}
    counts = {"k": d2, "j": d2, "l": d2, "b": m, "f": d1}
    lines, gains = section(problem, "Step"), {}
    for line in lines_of(lines, "psi", "penalty_slope"):
        evaluate([line], {}, functions)
    for line in lines[3:]:
        name = str(line.left.base) if isinstance(line, Equation) and hasattr(line.left, "base") else ""
        if name in ("yhat", "yhat_1", "yhat_2", "C", "A", "alpha", "beta"):
            (found,) = evaluate([line], values, functions, counts).values()
            gains[name] = np.array(found[0])
            if name == "A":
                gains[name][range(d2), range(d2)] = 1.0
            values[name] = counted(gains[name], "kk")
    shown |= {name: counted(gains[name][:, 0], "k") for name in ("alpha", "beta") if name in gains}
    averages = [line for line in section(problem, "Averages")[1:] if isinstance(line, Equation) and not line.closed]
    found = evaluate(averages, shown, functions, counts)
    for name, each in zip(("P", "D", "Lambda"), right, strict=True):
        assert close(found[name][0].reshape(each.shape), each)
    for view in views:
        if problem.model.centering == "population":
            assert close(found[f"ybar{view}"][0], values[f"ybar{view}"][1:, :, 0])


@pytest.mark.parametrize("noise", [None, "correlated"])
@pytest.mark.parametrize("centering", ["none", "batch"])
def test_the_step_is_that_of_sgd(noise, centering):
    several = "model = { channels = 2, batch_size = 3, learning_rate = 0.8, activation = 'tanh' }"
    two = TWO.replace("0.5", "[0.5, 0.1]").replace("-0.4", "[-0.4, 0.2]")
    lines = two, *EVERY_STEP, several, f"model.centering = '{centering}'", NOISES.get(noise, "")
    penalty = "decorrelation = { penalty = 'smooth_absolute', strength = 0.7 }", "particles.method = 'plain'"
    problem = make_problem(*lines, *penalty, "prior = { name = 'l1', strength = 0.7 }")
    run, printed, functions = simulate_sgd(problem), section(problem, "Step"), {}
    evaluate(lines_of(printed, "sigma", "slope", "phi", "psi", "penalty_slope"), {}, functions)
    views, counts = ("_1", "_2") if noise else ("",), {"k": 2, "j": 2, "b": 3}
    U, w = run.U.values[0], run.weights.values[0, 0]
    samples = Samples(problem, U, 0)
    for after in run.weights.values[0, 1:]:
        values = {"N": N, "w": counted(w.T, "k")}
        for view, x in zip(views, samples.draw(), strict=False):
            z = w.T @ x.T / np.sqrt(N)
            values |= {f"z{view}": counted(z, "kb"), f"x{view}": counted(x, "b")}
            values[f"ybar{view}"] = counted(functions["sigma"](z).mean(axis=1)[:, None], "k")[..., 0]
        for line in printed:
            name = str(getattr(getattr(line, "left", None), "base", ""))
            if name in ("yhat", "yhat_1", "yhat_2", "C", "A", "alpha", "beta"):
                ((found,),) = evaluate([line], values, functions, counts).values()
                values[name] = counted(np.where(np.eye(2), 1.0, found) if name == "A" else found, "kk")
        moved = []
        for k in (1, 2):
            (found,) = evaluate(lines_of(printed, r"\tilde w_k"), values | {"k": k}, functions)[r"\tilde w_k"]
            moved.append(np.sqrt(N) * found / np.linalg.norm(found))
        assert np.abs(np.transpose(moved) - after).max() <= ROUNDING
        w = after


def printed_motion(problem, averages, u, w, p):
    """Lines of the weights and overlaps that are printed, evaluated for all weights, velocities and coordinates."""
    d1, d2 = averages.P.shape
    q, M = u @ w.T / u.shape[1], w @ w.T / u.shape[1]
    given = {"q": (q, "fk"), "P": (averages.P, "fk"), "u": (u, "f"), "w": (w, "k"), "p": (p, "k"), "M": (M, "kl")}
    right = coefficients(averages, q, M, problem.model.rate)
    given |= {"H": (right.of_weights / problem.model.rate, "kl"), "D": (averages.D, "kl")}
    given |= {"Lambda": (averages.Lambda, "kl"), "r": ((w * problem.prior.force(w)).mean(axis=1), "k")}
    values = {}
    for name, (array, axes) in given.items():
        array = array[..., None] if array.ndim == len(axes) else array  # behind indices there are coordinates
        array, axes = (array[0], axes[1:]) if d1 == 1 and axes[0] == "f" else (array, axes)
        values[name] = counted(array, axes)
    functions = {"phi": problem.prior.force, "expectation": lambda of: np.mean(of, axis=-1)}
    lines = [*section(problem, "Weights"), *(section(problem, "Order") if problem.model.momentum_rate is None else [])]
    found = {}
    for line in lines:
        if isinstance(line, Equation) and not isinstance(line.right, str):
            for f, k, j in product(range(d1), range(d2), range(d2)):
                at = values | {"f": f + 1, "k": k + 1, "l": j + 1}
                for name, (value,) in evaluate([line], at, functions).items():
                    shape = (d1, d2, d2, *np.shape(value))
                    found.setdefault(name.partition("[")[0], np.zeros(shape))[f, k, j] = value
            name = str(line.left).partition("[")[0]
            if name in "anK":
                whole = found[name][:, :, 0] if name == "a" else found[name][0, :, 0] if name == "n" else found[name][0]
                whole, axes = (
                    (whole[0], "k") if name == "a" and d1 == 1 else (whole, {"a": "fk", "n": "k", "K": "kl"}[name])
                )
                values[name] = counted(whole, axes)
    return found, q, M, right


@pytest.mark.parametrize("prior", ["none", "l2", "l1"])
@pytest.mark.parametrize("features", [1, 2])
def test_weights_and_overlaps_move_as_in_the_code(features, prior):
    problem = problem_of(features, prior={"name": prior, "strength": 0.7})
    (u, w, p), averages = random_weights(features), random_averages(features)
    found, q, M, right = printed_motion(problem, averages, u, w, p)
    H = right.of_weights / problem.model.rate
    assert found["(H K)_{kl}"][0, ..., 0] == pytest.approx(
        H @ found["K"][0, ..., 0],
        abs=1e-12,  # rounding of numbers of order 1, as K is far from singular
    )
    pull = problem.model.rate * problem.prior.force(w)
    n = right.multiplier - (w * pull).mean(axis=1)
    drift = right.of_features @ u + right.of_weights @ w - pull - n[:, None] * w
    assert found["Gamma"][0, :, 0] == pytest.approx(drift, abs=1e-12)  # sums of ten terms of order 1
    of_q, of_M = velocity(averages, q, M, problem.model.rate)
    if prior == "l1":
        of_q, of_M = u @ drift.T / 50, (w @ drift.T + drift @ w.T) / 50 + averages.Lambda
    moved = [found[name] for name in found if name.startswith(r"\frac{\mathrm d")]
    assert moved[0][:, :, 0, ..., 0] == pytest.approx(of_q, abs=1e-12)  # the same
    assert moved[1][0, ..., 0] == pytest.approx(of_M, abs=1e-12)  # the same


@pytest.mark.parametrize("prior", ["none", "l2"])
def test_weights_with_a_velocity_move_as_in_the_code(prior):
    problem = problem_of(2, prior={"name": prior, "strength": 0.7}, model={"momentum_rate": 1.5})
    (u, w, p), averages = random_weights(), random_averages()
    found, q, M, _ = printed_motion(problem, averages, u, w, p)
    field = FieldWithVelocity(Given(problem, averages), 1.5, 0.0)
    zeros = np.zeros((8, 2))  # of averages
    state = np.concatenate([field.packed(q, M), np.vstack([u @ p.T / 50, w @ p.T / 50, p @ p.T / 50, zeros]).ravel()])
    of_q, of_M = field.unpacked(field(state))
    of_along, of_inward, of_square = field._others(field(state))[:3]
    moved, drift = found[r"\mathrm dw_k/\mathrm dt"][0, :, 0], found["Gamma"][0, :, 0]
    assert moved @ u.T / 50 == pytest.approx(of_q.T, abs=1e-12)  # sums of ten terms of order 1
    assert (moved @ w.T + w @ moved.T)[0, 1] / 50 == pytest.approx(of_M[0, 1], abs=1e-12)  # the same
    assert u @ drift.T / 50 == pytest.approx(of_along, abs=1e-12)  # the same
    assert (w @ drift.T + moved @ p.T) / 50 == pytest.approx(of_inward, abs=1e-12)  # the same
    assert (p @ drift.T + drift @ p.T) / 50 + averages.Lambda == pytest.approx(of_square, abs=1e-12)  # the same


class Given:
    """A closure whose averages are given."""

    def __init__(self, problem, averages):
        self.problem, self._averages = problem, averages

    def __call__(self, q, M):
        return self._averages


def random_weights(features=2, channels=2, count=50):
    """u, w and velocities p at some coordinates, with E[u u] = 1 and w of length 1 each."""
    rng = np.random.default_rng(0)
    u = np.linalg.qr(rng.normal(size=(count, features)))[0].T * np.sqrt(count)
    w, p = rng.normal(size=(2, channels, count))
    return u, w / np.sqrt((w**2).mean(axis=1, keepdims=True)), p


def random_averages(features=2, channels=2):
    rng = np.random.default_rng(1)
    root, D = rng.normal(size=(2, channels, channels))
    return BatchAverages(rng.normal(size=(features, channels)), D, root @ root.T)
