"""Steps with one vector of normals, and the chain of q alone, against plain SGD: at every N the same law of everything.

Ensembles with different seeds are compared by Kolmogorov-Smirnov tests of two samples: every overlap at four times,
products of overlaps at two times, and where they exist r, single weights given their feature coordinates, and escape
times. Products are centred by the mean of both samples together, which leaves the test exact: under the hypothesis
that is tested all replicas of both are exchangeable, whatever is made of them by a rule that does not see which is
which. Ties make the test conservative.

The seeds are fixed. Had they been drawn at random, the ordinary tests would raise a false alarm with probability below
`FALSE_ALARM` all together, and the slow ones likewise: each comparison of two ensembles has an equal share of it, and
each of its statistics an equal share of that (Bonferroni).

Learning rates are so large that q spreads over much of its range within half a unit of time. Cases with only a few
coordinates have many replicas: there a mistake in the number of degrees of freedom changes everything.
"""

from functools import cache
from itertools import combinations, pairwise, product
from typing import NamedTuple

import numba
import numpy as np
import pytest

from meanfield.ensembles.streams import stream_key
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.sgd.base_stepper import linear_pull
from meanfield.families.contrastive.sgd.plain import sgd_steps
from meanfield.families.contrastive.sgd.projected import projected_steps
from meanfield.families.contrastive.sgd.start import draw_features, draw_weights, escape_level
from meanfield.families.contrastive.sgd.steppers import STEPPERS
from meanfield.families.contrastive.sgd.training import training_of
from meanfield.numerics.compiled.scalar_functions import compile_loop, compile_scalar
from meanfield.numerics.compiled.separate_calls import call
from tests.example_problems import feature, features, gaussian, make_problem
from tests.oracles.p_values import same_law

FALSE_ALARM = 1e-2  # of all ordinary tests of this file together, and of all slow ones
REPLICAS = {"plain": 1200, "projected": 1200, "chain": 2400}
SEEDS = {"plain": 11, "projected": 12, "chain": 13}
"""Seeds of the three kinds of steps; they differ because features and weights at t = 0 come from the same streams of a
seed."""
CROWD = 10_000
"""Number of replicas where there are few coordinates."""

SKEWED = '{ law = "discrete", values = [-1.0, 2.5], probabilities = [0.7142857142857143, 0.2857142857142857] }'
SPARSE = '{ law = "three_point", second_moment = 1.5, fourth_moment = 9.0 }'
LAPLACE = '{ law = "laplace", second_moment = 2.0 }'
STUDENT = '{ law = "student_t", degrees_of_freedom = 5.0, second_moment = 2.0 }'
MIXTURE = '{ law = "gaussian_mixture", means = [-1.5, 0.5], variances = [0.2, 0.7], probabilities = [0.25, 0.75] }'
UNIFORM = '{ law = "uniform", second_moment = 2.5 }'
JOINT = (
    'hidden = { law = "discrete", probabilities = [0.4, 0.2, 0.4] }',
    "hidden.values = [[2.0, 1.5], [-1.0, 1.0], [-1.0, -2.0]]",
)
CORRELATED = "augmentation = { variance = [0.3, 0.9], correlation = 0.6 }"
OPPOSITE = "augmentation = { variance = [0.5, 0.5], correlation = -1.0 }"
UNEQUAL = "augmentation.variance = [1.2, 0.2]"
STRONG = "augmentation = { variance = [2.0, 3.0], correlation = 0.3 }"
ONE_VIEW = "augmentation.variance = [0.0, 0.7]"


def model(activation, centering, learning_rate, batch_size):
    return (
        f'model = {{ activation = "{activation}", centering = "{centering}" }}',
        f"model = {{ learning_rate = {learning_rate}, batch_size = {batch_size} }}",
    )


CASES = {
    "one sample": (*model("quadratic", "none", 0.15, 1), features(feature(0.5, LAPLACE))),
    "correlated noise": (*model("tanh", "population", 6.0, 2), CORRELATED, features(feature(0.6, SKEWED))),
    "opposite views": (*model("quadratic", "batch", 0.3, 2), OPPOSITE, features(feature(0.7, UNIFORM))),
    "one noisy view, l2": (
        *model("relu", "none", 1.5, 3),
        ONE_VIEW,
        'prior = { name = "l2", strength = 1.0 }',
        features(feature(-0.6, MIXTURE)),
    ),
    "two features": (
        *model("relu", "population", 2.0, 1),
        UNEQUAL,
        features(feature(0.6, SKEWED), feature(-0.5, gaussian(2.0), "rademacher")),
    ),
    "two dependent features": (
        *model("tanh", "batch", 8.0, 3),
        CORRELATED,
        "features = [{ initial_overlap = 0.6 }, { initial_overlap = 0.3 }]",
        *JOINT,
    ),
    "three features": (
        *model("tanh", "none", 6.0, 4),
        features(feature(0.4, STUDENT), feature(-0.4, SKEWED, "laplace"), feature(0.5, SPARSE, "rademacher")),
    ),
    "random start": (
        *model("quadratic", "none", 0.15, 2),
        features(feature("random", SPARSE), feature("random", UNIFORM)),
        "particles.escape_overlap = 0.3",
    ),
}
"""Problems with priors of linear phi, which the chain takes as well."""

WITH_PRIORS = {
    "l1": (
        *model("tanh", "none", 6.0, 2),
        CORRELATED,
        'prior = { name = "l1", strength = 0.3 }',
        features(feature(0.7, SKEWED), feature(-0.3, gaussian(2.0), "rademacher")),
    ),
    "quartic, random start": (
        *model("relu", "batch", 2.0, 4),
        OPPOSITE,
        'prior = { name = "quartic", strength = 0.4 }',
        features(feature("random", STUDENT)),
        "particles.escape_overlap = 0.3",
    ),
    "several blocks of an odd vector": (
        *model("quadratic", "none", 3.0, 1),
        'prior = { name = "l1", strength = 100.0 }',
        features(feature(0.6, SPARSE)),
        "particles.dimension = 1025",
        "particles.replicas = 500",
        f"time.stop = {8 / 1025}",
    ),
}
"""Problems with priors of nonlinear phi, which need the weights."""

FEW_COORDINATES = {
    "N = 3": (*model("tanh", "none", 3.0, 2), CORRELATED, features(feature(0.5, SKEWED))),
    "N = 4": (*model("relu", "population", 2.0, 1), UNEQUAL, features(feature(0.5, SKEWED))),
    "N = 4, two features": (
        *model("tanh", "batch", 6.0, 2),
        STRONG,
        'prior = { name = "l2", strength = 0.2 }',
        features(feature(0.5, SKEWED), feature(0.3, LAPLACE)),
    ),
    "N = 5": (*model("relu", "none", 2.0, 1), features(feature(0.4, STUDENT)), "particles.escape_overlap = 0.8"),
    "N = 5, two features": (
        *model("relu", "batch", 4.0, 2),
        OPPOSITE,
        features(feature(0.5, SPARSE), feature(-0.6, SKEWED)),
    ),
    "N = 5, l1": (
        *model("tanh", "none", 5.0, 1),
        STRONG,
        'prior = { name = "l1", strength = 0.5 }',
        features(feature(0.5, MIXTURE), feature(0.3, LAPLACE)),
        "particles.escape_overlap = 0.8",
    ),
    "N = 6, three features": (
        *model("tanh", "none", 6.0, 4),
        features(feature(0.4, STUDENT), feature(-0.4, SKEWED, "laplace"), feature(0.5, SPARSE, "rademacher")),
    ),
    "N = 6, quartic": (
        *model("relu", "batch", 6.0, 3),
        ONE_VIEW,
        'prior = { name = "quartic", strength = 0.3 }',
        "features = [{ initial_overlap = 0.6 }, { initial_overlap = 0.3 }]",
        *JOINT,
    ),
    "N = 8": (
        *model("quadratic", "none", 0.3, 1),
        "augmentation = { variance = [2.0, 0.2], correlation = -0.8 }",
        features(feature(0.6, gaussian(6.0))),
    ),
}
"""The smallest N, at which one to six degrees of freedom are left; one step for each output time."""

MORE_COORDINATES = ("several blocks of an odd vector",)
"""Cases that the ordinary tests run as well, at N above 1000: what a few coordinates do not have."""

ORDINARY = {name: case for name, case in (CASES | WITH_PRIORS).items() if name in MORE_COORDINATES} | FEW_COORDINATES
SLOW = CASES | {name: case for name, case in WITH_PRIORS.items() if "blocks" not in name}


def problem_of(case, dimension, method):
    return make_problem(
        "time = { stop = 0.5, outputs = 5 }",
        f"particles = {{ dimension = {dimension}, replicas = {REPLICAS[method]}, seed = {SEEDS[method]} }}",
        f'particles.method = "{method}"',
        *(CASES | WITH_PRIORS)[case],
    )


def small_problem_of(case, method):
    N = int(case[4])
    return make_problem(
        f"time = {{ stop = {4 / N}, outputs = 5 }}",
        f"particles = {{ dimension = {N}, replicas = {CROWD}, seed = {SEEDS[method]} }}",
        f'particles.method = "{method}"',
        *ORDINARY[case],
    )


class Run(NamedTuple):
    """What replicas are compared by: q (replicas, 4, d1), r (replicas, 4), steps of escape, weights and features."""

    q: np.ndarray
    r: np.ndarray
    escape: np.ndarray
    w: np.ndarray
    u: np.ndarray


def simulate(problem, change=lambda training: training):
    """All replicas, one after the other; `change` alters what the compiled steps know of the problem."""
    method, replicas, N = problem.particles.method, problem.particles.replicas, problem.particles.dimension
    training, outputs = change(training_of(problem)), Closure(problem).mean_outputs
    size = replicas if method == "chain" else 1
    steps = np.rint(problem.time.outputs_at * N).astype(int)
    parts = []
    for first in range(0, replicas, size):
        stepper = STEPPERS[method](problem, training, outputs, range(first, first + size))
        q, r = [], []
        for start, end in pairwise(steps):
            stepper.advance(int(start), int(end - start))
            q.append(stepper.overlap.copy())
            r.append(stepper.prior_work)
        chosen = coordinates(N)
        weights = (np.zeros((size, 0)), np.zeros((size, 0, 1))) if method == "chain" else at(chosen, stepper)
        parts.append(Run(np.stack(q, axis=1), np.stack(r, axis=1), stepper.escape, *weights))
    run = Run(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    return run._replace(escape=np.where(run.escape < 0, np.inf, run.escape))


def crowd(problem):
    """Many replicas with weights that all start from the same w and U, one step for each output time.

    The law of everything given the start is the same for all methods, too. Only numbers differ from those that the
    package draws: plain SGD takes all of its from one generator, and projected SGD has its usual ones.
    """
    training, outputs = training_of(problem), Closure(problem).mean_outputs
    prior, N = problem.prior, problem.particles.dimension
    addresses = problem.model.activation_functions.addresses
    start = np.random.default_rng(20)
    U = draw_features(problem, start)
    w = np.tile(draw_weights(problem, U, start), (CROWD, 1))
    escape, level = np.full(CROWD, -1), escape_level(problem)
    rng, q, r, weights = np.random.default_rng(problem.particles.seed), [], [], []
    linear, key = prior.functions.linear, stream_key(problem.particles.seed)
    loop, scalar = 0 if linear else compile_loop(prior.functions.unit_force), compile_scalar(prior.functions.unit_force)
    state, vector = np.tile(np.append(w[0] @ U / N, 1.0), (CROWD, 1)), np.empty(N + N % 2)
    for step in range(4):
        if problem.particles.method == "plain":
            shape = CROWD, 1, problem.model.batch_size
            hidden = np.concatenate([law.sample(rng, shape) for law in problem.hidden_laws], axis=3)
            plain_crowd(
                training, outputs, addresses, scalar, prior.strength, rng, hidden, step, level, w, U, escape,
            )  # fmt: skip
        else:
            pull = linear_pull(problem) if linear else 0.0
            projected_crowd(
                training,
                outputs,
                pull,
                loop,
                prior.strength,
                key,
                step,
                level,
                w,
                U.T.copy(),
                vector,
                state,
                escape,
            )
        weights.append(w * state[:, -1:])
        q.append(weights[-1] @ U / N)
        r.append((weights[-1] * prior.force(weights[-1])).mean(axis=1))
    arrays = np.stack(q, axis=1), np.stack(r, axis=1), np.where(escape < 0, np.inf, escape)
    return Run(*arrays, np.concatenate(weights[::3], axis=1), np.zeros((CROWD, 0, 1)))


@numba.njit(cache=True, error_model="numpy")
def plain_crowd(training, outputs, addresses, force, strength, rng, hidden, step, level, w, U, escape):
    at_rest = np.empty(0)  # there is no momentum
    for i in range(len(w)):
        call(
            sgd_steps, training, outputs, addresses, force, strength, rng, hidden[i], step, level, w[i], at_rest, U,
            escape[i : i + 1],
        )  # fmt: skip


@numba.njit(cache=True, error_model="numpy")
def projected_crowd(training, outputs, pull, force, strength, key, step, level, w, rows, vector, state, escape):
    for i in range(len(w)):
        call(
            projected_steps,
            training,
            outputs,
            pull,
            force,
            strength,
            key,
            i,
            step,
            1,
            level,
            w[i],
            rows,
            vector,
            state[i],
            escape[i : i + 1],
        )


def coordinates(N):
    """Some coordinates of the weights: the first two, the last, and both sides of a border between blocks of work."""
    return sorted({i for i in (0, 1, 511, 512, N - 1) if i < N})


def at(chosen, stepper):
    return stepper.weights[None, chosen], stepper.features[None, chosen]


def statistics(run, other, problem):
    """Pairs of samples that have the same law if the runs have, by name."""
    pairs = overlaps(run.q, other.q)
    if problem.particles.escape_overlap is not None:
        pairs["escape"] = run.escape, other.escape
    if not problem.prior.functions.linear:
        pairs |= {f"r({j + 1})": (run.r[:, j], other.r[:, j]) for j in range(4)}
    if run.w.size and other.w.size:
        pairs |= single_weights(run, other)
    return pairs


def overlaps(q, other):
    d1 = q.shape[2]
    pairs = {f"q{k}({j + 1})": (q[:, j, k], other[:, j, k]) for j, k in product(range(4), range(d1))}
    if d1 > 1:
        pairs |= {f"|q|({j + 1})": tuple((x[:, j] ** 2).sum(axis=1) for x in (q, other)) for j in range(4)}
    middle = np.concatenate([q, other]).mean(axis=0)
    q, other = q - middle, other - middle
    now = [(i, i, a, b) for i in range(4) for a, b in combinations(range(d1), 2)]
    for i, j, a, b in now + [(i, j, a, b) for i, j in ((0, 3), (1, 2)) for a, b in product(range(d1), repeat=2)]:
        pairs[f"q{a}({i + 1}) q{b}({j + 1})"] = tuple(x[:, i, a] * x[:, j, b] for x in (q, other))
    return pairs


def single_weights(run, other):
    """Weights, also given that their feature coordinates are positive, negative or large, and products of two."""
    count, d1 = run.w.shape[1], run.u.shape[2]
    pairs = {f"w{i}": (run.w[:, i], other.w[:, i]) for i in range(count)}
    given = {"> 0": lambda u: u > 0, "< 0": lambda u: u < 0, "> 1 in size": lambda u: np.abs(u) > 1}
    for (name, condition), i, k in product(given.items(), range(run.u.shape[1]), range(d1)):
        samples = tuple(x.w[condition(x.u[:, i, k]), i] for x in (run, other))
        if min(map(len, samples)) > 0:
            pairs[f"w{i} given u{k} {name}"] = samples
    for i, j in combinations(range(count), 2):
        pairs[f"w{i} w{j}"] = tuple(x.w[:, i] * x.w[:, j] for x in (run, other))
    return pairs


def p_values(pairs):
    return {name: same_law(*map(rounded, samples)) for name, samples in pairs.items()}


def rounded(sample):
    """Equal numbers made equal: where relu is off for a whole batch the weights stay, but for their last bits."""
    return np.round(sample, 9)


@cache
def small_plain_run(case):
    return crowd(small_problem_of(case, "plain"))


def methods_of(case):
    prior = make_problem(*(ORDINARY | SLOW)[case]).prior
    return ("projected",) if prior.name in ("l1", "quartic") else ("projected", "chain")


def level(cases):
    """The share of one comparison of two ensembles in the rate of false alarms."""
    return FALSE_ALARM / sum(len(methods_of(case)) for case in cases)


def check(run, plain, problem, cases):
    p = p_values(statistics(run, plain, problem))
    name = min(p, key=p.get)
    assert p[name] > level(cases) / len(p), f"{problem.particles.method}: {name}, p = {p[name]:.1e}"  # the docstring's
    spread = plain.q.std(axis=0).max() * np.sqrt(problem.particles.dimension)
    assert spread > 0.5  # so that a law is compared, and not a number: of the order of its limit (theory.md, section 4)


@pytest.mark.parametrize("case", MORE_COORDINATES)
def test_same_law_as_plain_sgd(case):
    plain = simulate(problem_of(case, 64, "plain"))
    for method in methods_of(case):
        problem = problem_of(case, 64, method)
        check(simulate(problem), plain, problem, ORDINARY)


@pytest.mark.parametrize("case", FEW_COORDINATES)
def test_same_law_as_plain_sgd_with_few_coordinates(case):
    plain = small_plain_run(case)
    for method in methods_of(case):
        problem = small_problem_of(case, method)
        check((simulate if method == "chain" else crowd)(problem), plain, problem, ORDINARY)


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW)
def test_same_law_as_plain_sgd_with_more_coordinates(case):
    plain = simulate(problem_of(case, 500, "plain"))
    for method in methods_of(case):
        problem = problem_of(case, 500, method)
        check(simulate(problem), plain, problem, SLOW)


def test_prior_work_of_a_linear_prior_is_its_strength():
    """r = w.phi(w)/N = strength |w|^2/N."""
    case = "N = 4, two features"
    for method in REPLICAS:
        particles = f'particles = {{ method = "{method}", replicas = 5, dimension = 4 }}'
        problem = make_problem(*ORDINARY[case], particles, "time = { stop = 1.0, outputs = 5 }")
        assert simulate(problem).r == pytest.approx(0.2, abs=1e-12)  # on the sphere: rounding


MISTAKES = {
    # with one dimension more and the same tau/N
    "N - d1 degrees of freedom": lambda training: training._replace(
        dimension=training.dimension + 1,
        rates=training.rates * [(training.dimension + 1) / training.dimension, 1.0, 1.0],
    ),
    "no noise orthogonal to the weights": lambda training: training._replace(noise=np.zeros((2, 2))),
    "noises that are not correlated there": lambda training: training._replace(noise=np.diag(np.diag(training.noise))),
    "the other view's noise there": lambda training: training._replace(noise=training.noise[::-1, ::-1].copy()),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(mistake):
    """The comparison above refuses steps that are nearly right: it has power."""
    problem = small_problem_of("N = 8", "chain")
    p = p_values(statistics(simulate(problem, MISTAKES[mistake]), small_plain_run("N = 8"), problem))
    assert min(p.values()) < level(ORDINARY) / len(p)  # where the comparison refuses
