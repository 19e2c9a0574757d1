"""SGD of several channels by the chain and by projected steps, against plain SGD: at every N the same law.

Crowds of replicas with different seeds are compared by Kolmogorov-Smirnov tests of two samples: all overlaps q and M at
four steps, products of two of them at the last step and of each at different steps, the same of single weights, and r
under nonlinear priors. Products are centred by the mean of both samples together, which leaves the test exact
(see tests/families/contrastive/sgd/test_equality_in_law.py). N is as small as it can be, so that a mistake in a number
of degrees of freedom changes everything, and learning rates are so large that a step moves the overlaps by much.

The seeds are fixed. Had they been drawn at random, the tests of this file that compare laws would raise a false alarm
with probability below `FALSE_ALARM` all together: each comparison of two crowds has an equal share of it, and each of
its statistics an equal share of that (Bonferroni).
"""

from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest

from meanfield.ensembles.streams import stream_key
from meanfield.families.contrastive.sgd.base_stepper import linear_pull
from meanfield.families.contrastive.sgd.channels import chain, plain, projected
from meanfield.families.contrastive.sgd.channels.batch import room_for
from meanfield.families.contrastive.sgd.start import (
    draw_channel_coordinates,
    draw_channel_weights,
    draw_features,
    products,
)
from meanfield.families.contrastive.sgd.steppers import STEPPERS, prepare_steppers
from meanfield.families.contrastive.sgd.training import outputs_of, training_of
from meanfield.numerics.compiled.scalar_functions import compile_loop, compile_scalar
from tests.example_problems import gaussian, make_problem
from tests.oracles.p_values import same_law

FALSE_ALARM = 1e-2
CROWD = 10_000
STEPS = 4
SEEDS = {"plain": 21, "projected": 22, "chain": 23, "one channel": 24}

SKEWED = '{ law = "discrete", values = [-1.0, 2.5], probabilities = [0.7142857142857143, 0.2857142857142857] }'
SPARSE = '{ law = "three_point", second_moment = 1.5, fourth_moment = 9.0 }'
CORRELATED = "augmentation = { variance = [0.3, 0.9], correlation = 0.6 }"
OPPOSITE = "augmentation = { variance = [0.5, 0.5], correlation = -1.0 }"
UNEQUAL = "augmentation.variance = [1.2, 0.2]"


def model(activation, centering, learning_rate, batch_size, channels=2, overlap=0.25):
    first = "" if overlap is None else f"initial_channel_overlap = {overlap}, "
    return (
        f'model = {{ activation = "{activation}", centering = "{centering}" }}',
        f"model = {{ {first}channels = {channels}, learning_rate = {learning_rate}, batch_size = {batch_size} }}",
    )


def penalty(name, strength):
    return f'decorrelation = {{ penalty = "{name}", strength = {strength} }}'


def features(*pairs):
    tables = (f"{{ hidden = {hidden}, initial_overlap = {start} }}" for start, hidden in pairs)
    return f"features = [{', '.join(tables)}]"


CASES = {
    "N = 5": (
        *model("quadratic", "none", 3.0, 2),  # most of the weights is new after a step
        "augmentation = { variance = [2.0, 2.0], correlation = -0.8 }",
        penalty("square", 0.1),
        features(("[0.5, -0.3]", gaussian(6.0))),
    ),
    "N = 5, opposite views": (
        *model("quadratic", "population", 0.1, 2),
        OPPOSITE,
        penalty("square", 0.2),
        features(("[0.6, 0.3]", SKEWED)),
    ),
    "N = 6, two features": (
        *model("tanh", "batch", 4.0, 2),
        CORRELATED,
        penalty("absolute", 0.8),
        features(("[0.5, 0.2]", SKEWED), ("[-0.3, 0.4]", gaussian(2.0))),
    ),
    "N = 7, three channels": (
        *model("tanh", "none", 3.0, 1, 3, 0.1),
        penalty("smooth_absolute", 0.7),
        features(("[0.5, -0.3, 0.1]", SKEWED)),
    ),
    "N = 8, three channels": (
        *model("tanh", "batch", 4.0, 2, 3, "[[1.0, 0.25, 0.1], [0.25, 1.0, -0.2], [0.1, -0.2, 1.0]]"),
        UNEQUAL,
        penalty("absolute", 0.6),
        features(("[0.5, 0.3, 0.1]", SKEWED), ("[0.2, 0.4, -0.3]", gaussian(2.0))),
    ),
    "N = 6, l2": (
        *model("relu", "batch", 2.0, 3),
        penalty("square", 1.0),
        'prior = { name = "l2", strength = 0.5 }',
        features(("[0.5, -0.4]", SPARSE)),
    ),
    "N = 5, l1": (
        *model("tanh", "none", 3.0, 1),
        UNEQUAL,
        penalty("square", 1.0),
        'prior = { name = "l1", strength = 0.5 }',
        features(("[0.5, 0.3]", SKEWED)),
    ),
    "N = 6, random start": (
        *model("quadratic", "none", 0.1, 2, overlap=None),
        penalty("absolute", 0.5),
        features(('"random"', SPARSE), ('"random"', gaussian(2.0))),
    ),
}
"""Problems of two or three channels, with every centring and penalty, with noise and without."""


def problem_of(case, method, *changes):
    N = int(case[4])
    return make_problem(
        f"time = {{ stop = {STEPS / N}, outputs = {STEPS + 1} }}",
        f"particles = {{ dimension = {N}, replicas = {CROWD}, seed = {SEEDS[method]}, snapshots = [] }}",
        *CASES[case],
        *changes,
    )


class Run(NamedTuple):
    """What crowds are compared by: q (replicas, steps, d1 d2), M of all pairs, r of the channels, and some weights."""

    q: np.ndarray
    M: np.ndarray
    r: np.ndarray
    w: np.ndarray


def crowd(problem, method, change=lambda training: training):
    """Many replicas from the same start, or from random ones; `change` alters what compiled steps know."""
    training, outputs, settings = change(training_of(problem)), outputs_of(problem), problem.particles
    N, d2, prior, linear = settings.dimension, problem.model.channels, problem.prior, problem.prior.functions.linear
    key, reached, start = stream_key(settings.seed), np.zeros(CROWD, np.int64), np.random.default_rng(20)
    pull, room, rng = linear_pull(problem) if linear else 0.0, room_for(training), np.random.default_rng(settings.seed)
    if method == "chain":
        X, work = draw_channel_coordinates(problem, key, range(CROWD)), chain.work_for(training)
    else:
        rows = draw_features(problem, start)
        starts = [draw_channel_weights(problem, rows, start) for _ in range(CROWD if problem.random_start else 1)]
        W, U = np.resize(np.array(starts), (CROWD, d2, N)), np.tile(rows.T, (CROWD, 1, 1))
        gram, scales = products(W, U), np.ones((CROWD, d2))
    q, M, r, weights, pairs = [], [], [], [], np.triu_indices(d2, 1)
    for step in range(STEPS):
        if method == "chain":
            chain.chain_steps(training, outputs, pull, key, 0, step, 1, X, reached, room, work)
            d1 = X.shape[2] - d2
            q.append(X[:, :, :d1].swapaxes(1, 2).reshape(CROWD, -1).copy())
            M.append((X @ X.swapaxes(1, 2))[:, *pairs])
            continue
        if method == "plain":
            shape = CROWD, 1, problem.model.batch_size
            hidden = np.concatenate([law.sample(rng, shape) for law in problem.hidden_laws], axis=3)
            scalar = compile_scalar(prior.functions.unit_force)
            plain.plain_steps(training, outputs, scalar, prior.strength, rng, hidden, step, W, W[:, :0], U, reached)
        else:
            loop, work = 0 if linear else compile_loop(prior.functions.unit_force), projected.work_for(training)
            projected.projected_steps(
                training, outputs, pull, loop, prior.strength, key, 0, step, 1, W, U, gram, scales, reached, room,
                work,
            )  # fmt: skip
        w = W * scales[:, :, None]
        q.append((U @ w.swapaxes(1, 2) / N).reshape(CROWD, -1))
        M.append((w @ w.swapaxes(1, 2) / N)[:, *pairs])
        r.append((w * prior.force(w.ravel()).reshape(w.shape)).mean(axis=2))
        weights.append(w[:, :, 0])
    assert (reached == STEPS).all()
    empty = np.zeros((CROWD, STEPS, 0))
    return Run(np.stack(q, 1), np.stack(M, 1), *(np.stack(x, 1) if x else empty for x in (r, weights)))


def statistics(run, other, problem):
    """Pairs of samples that have the same law if the runs have, by name."""
    parts = [(run.q, other.q), (run.M, other.M)]
    if run.w.size and other.w.size:
        parts += [(run.w, other.w)]
        parts += [] if problem.prior.functions.linear else [(run.r, other.r)]
    columns = [np.concatenate(sides, axis=2) for sides in zip(*parts, strict=True)]
    count = columns[0].shape[2]
    pairs = {f"{i} at {t}": tuple(x[:, t, i] for x in columns) for t in range(STEPS) for i in range(count)}
    middle = np.concatenate(columns).mean(axis=0)
    first, last = ([x[:, t] - middle[t] for x in columns] for t in (0, STEPS - 1))
    for i in range(count):
        pairs[f"{i} then {i}"] = tuple(x[:, i] * y[:, i] for x, y in zip(first, last, strict=True))
    for i, j in combinations(range(count), 2):
        pairs[f"{i} {j} in the end"] = tuple(x[:, i] * x[:, j] for x in last)
    return pairs


def p_values(pairs):
    return {name: same_law(*map(rounded, samples)) for name, samples in pairs.items()}


def rounded(sample):
    """Equal numbers made equal: where relu is off for a whole batch the weights stay, but for their last bits."""
    return np.round(sample, 9)


def methods_of(case):
    return ("projected",) if "l1" in case else ("projected", "chain")


LEVEL = FALSE_ALARM / (sum(len(methods_of(case)) for case in CASES) + 2)
"""The share of one comparison of two crowds: of those with plain SGD, and of two channels with a single one."""


@cache
def plain_crowd(case):
    return crowd(problem_of(case, "plain"), "plain")


@pytest.mark.parametrize(
    "case",
    [
        # its three channels are in the case before it, and the rest in that with two features
        pytest.param(case, marks=pytest.mark.slow if case == "N = 8, three channels" else ())
        for case in CASES
    ],
)
def test_same_law_as_plain_sgd(case):
    reference = plain_crowd(case)
    for method in methods_of(case):
        problem = problem_of(case, method)
        p = p_values(statistics(crowd(problem, method), reference, problem))
        name = min(p, key=p.get)
        assert p[name] > LEVEL / len(p), f"{method}: {name}, p = {p[name]:.1e}"  # false-alarm rate of the docstring
    assert reference.q.std(axis=0).min() > 0.03  # so that laws are compared, and not numbers
    assert reference.M.std(axis=0).min() > 0.03  # the same


MISTAKES = {
    # with one dimension more and the same tau/N
    "one degree of freedom more": (
        "N = 5",
        lambda training: training._replace(
            dimension=training.dimension + 1,
            rates=training.rates * [(training.dimension + 1) / training.dimension, 1.0, 1.0],
        ),
    ),
    "pairs of channels counted once": (
        "N = 6, two features",
        lambda training: training._replace(rates=training.rates * [1.0, 1.0, 0.5]),
    ),
    "noise of the views not correlated": (
        "N = 6, two features",
        lambda training: training._replace(
            view_factor=np.linalg.cholesky(1.0 + np.diag((training.noise_factor**2).sum(axis=1)))
        ),
    ),
    "the other view's noise": (
        "N = 6, two features",
        lambda training: training._replace(noise_factor=training.noise_factor[::-1, ::-1].copy()),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(mistake):
    """The comparison above refuses steps that are nearly right: it has power."""
    case, change = MISTAKES[mistake]
    problem = problem_of(case, "chain")
    p = p_values(statistics(crowd(problem, "chain", change), plain_crowd(case), problem))
    assert min(p.values()) < LEVEL / len(p)  # where the comparison refuses


def test_without_a_penalty_each_channel_is_a_network_of_its_own():
    """lambda = 0: the law of each channel is that of the chain of one channel, at the same small N."""
    case = "N = 6, two features"
    several = crowd(problem_of(case, "chain", "decorrelation.strength = 0.0"), "chain").q.reshape(CROWD, STEPS, 2, 2)
    for k, starts in enumerate(((0.5, -0.3), (0.2, 0.4))):
        alone = make_problem(
            *(line for line in CASES[case][:3] if "channels" not in line),
            "model = { learning_rate = 4.0, batch_size = 2 }",
            f"particles = {{ dimension = 6, replicas = {CROWD}, seed = {SEEDS['one channel'] + k}, method = 'chain' }}",
            f"features = [{{ hidden = {SKEWED}, initial_overlap = {starts[0]} }}, "
            f"{{ hidden = {gaussian(2.0)}, initial_overlap = {starts[1]} }}]",
        )
        stepper, q = prepare_steppers(alone, "chain")(range(CROWD)), []
        assert isinstance(stepper, STEPPERS["chain"])
        for step in range(STEPS):
            stepper.advance(step, 1)
            q.append(stepper.overlap.copy())
        single = np.stack(q, axis=1)
        p = [same_law(several[:, t, f, k], single[:, t, f]) for t in range(STEPS) for f in range(2)]
        p += [same_law(*(x[:, t].prod(axis=1) for x in (several[:, :, :, k], single))) for t in range(STEPS)]
        assert min(p) > LEVEL / len(p)  # false-alarm rate of the module's docstring
