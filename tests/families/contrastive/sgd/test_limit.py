"""SGD at N = 4096 against the limit N -> infinity: SGD is the judge of the ODEs and of the density.

At every output time the mean of 8 replicas (24 in one case) must lie within 3.5 standard errors (of that mean,
ddof = 1) of the limit.
With 7 degrees of freedom Student's t exceeds 3.5 in absolute value with probability 0.01. A case looks at 4 correlated
times, worth about two independent ones, of one to three overlaps and of r: some 50 independent looks in all, hence a
false alarm in about 4 of 10 runs with fresh seeds. The seeds are fixed. Corrections of order 1/N are a fraction of
a standard error at the small learning rates used here (they grow like tau^4/m^3).
"""

import numpy as np
import pytest

from meanfield.comparison.weights import distances
from meanfield.families.contrastive.density import solve_density
from meanfield.families.contrastive.order_parameters import solve_order_parameters
from meanfield.families.contrastive.sgd.simulation import simulate_sgd
from meanfield.results.result import Result
from tests import ROOT
from tests.example_problems import THREE_POINT, feature, features, gaussian, make_problem

STANDARD_ERRORS = 3.5
DIGITS = ROOT / "data/reference/digits_components.csv"
SKEWED = '{ law = "discrete", values = [-1.0, 2.5], probabilities = [0.7142857142857143, 0.2857142857142857] }'
CASES = {
    "no prior": ("model.learning_rate = 0.02",),
    "l1": (  # r shows a wrong strength as early as at the first output
        "model.learning_rate = 0.02",
        'prior = { name = "l1", strength = 5.0 }',
        "time.stop = 1.0",
    ),
    "quartic, two features": (
        "model.learning_rate = 0.02",
        'prior = { name = "quartic", strength = 2.0 }',
        features(feature(0.5, THREE_POINT), feature(0.4, gaussian(2.0), "rademacher")),
        "density = { cells = 300, half_width = 9.0, feature_nodes = 13, steps = 200 }",
        "time.stop = 1.0",
    ),
    "independent noise": (
        "model.learning_rate = 0.02",
        "augmentation.variance = [0.8, 0.3]",
        features(feature(0.7)),
        "time.stop = 1.0",
    ),
    "opposite views": (
        "model.learning_rate = 0.02",
        "augmentation = { variance = [0.5, 0.5], correlation = -1.0 }",
        features(feature(0.3)),
        "time.stop = 1.0",
    ),
    "population, tanh": (
        'model = { activation = "tanh", centering = "population", learning_rate = 1.0 }',
        features(feature(0.5, SKEWED)),
        "time.stop = 1.0",
    ),
    "batch": (  # at this overlap the corrections of drift and of diffusion do not make up for each other
        'model = { centering = "batch", learning_rate = 0.05, batch_size = 2 }',
        features(feature(0.85)),
        "time.stop = 1.0",
    ),
    "relu": (
        'model = { activation = "relu", centering = "population", learning_rate = 0.3 }',
        features(feature(0.5, SKEWED)),
    ),
    "gelu, correlated noise": (
        'model = { activation = "gelu", centering = "batch", learning_rate = 0.5, batch_size = 3 }',
        "augmentation = { variance = [0.3, 0.5], correlation = 0.5 }",
        features(feature(0.5, '{ law = "laplace", second_moment = 2.0 }')),
        "time.stop = 1.0",
    ),
    "a user's own activation": (
        'model = { activation = "tests.user_functions:bent", learning_rate = 0.2 }',
        features(feature(0.5, '{ law = "uniform", second_moment = 2.5 }')),
    ),
    "elastic_net": (
        "model.learning_rate = 0.02",
        'prior = { name = "elastic_net", strength = 8.0, parameters = { ratio = 0.7 } }',
        'initial_residual = { law = "rademacher" }',
        features(feature(0.5, coordinate="uniform")),
    ),
    "cauchy": ("model.learning_rate = 0.02", 'prior = { name = "cauchy", strength = 12.0 }'),
    "empirical": (
        "model.learning_rate = 0.05",
        features(feature(0.6, f'{{ law = "empirical", file = "{DIGITS}", column = 1 }}')),
    ),
    "two dependent features": (
        "model.learning_rate = 0.02",
        "features = [{ initial_overlap = 0.5 }, { initial_overlap = 0.3 }]",
        'hidden = { law = "discrete", probabilities = [0.4, 0.2, 0.4] }',
        "hidden.values = [[2.0, 1.5], [-1.0, 1.0], [-1.0, -2.0]]",
        "particles.replicas = 24",
    ),
    "three features": (
        'model = { activation = "relu", learning_rate = 0.3 }',
        features(
            feature(0.4, coordinate="rademacher"),
            feature(-0.4, '{ law = "student_t", degrees_of_freedom = 6.0, second_moment = 2.0 }', "rademacher"),
            feature(0.5, SKEWED, "rademacher"),
        ),
    ),
}


SLOW = (
    "no prior",
    "independent noise",
    "opposite views",
    "gelu, correlated noise",
    "relu",
    "a user's own activation",
    "elastic_net",
    "cauchy",
    "empirical",
    "two dependent features",
    "three features",
)
"""Cases whose parts other cases have, too (tanh stands for relu and gelu), or for which chains and plain SGD are
compared with projected SGD, as with noise of every sort; density/test_marginal.py has relu with opposite views, and
the draws of an empirical law have tests of their own."""


@pytest.mark.parametrize("case", [pytest.param(c, marks=pytest.mark.slow if c in SLOW else ()) for c in CASES])
def test_sgd_agrees_with_the_limit(case):
    problem = make_problem(
        "model.batch_size = 1",
        "time = { stop = 2.0, outputs = 5 }",
        features(feature(0.5)),
        "particles = { method = 'projected', dimension = 4096, replicas = 8, seed = 1 }",
        *CASES[case],
    )
    sgd, density = simulate_sgd(problem), solve_density(problem)
    assert density.status == sgd.status == "complete"
    limit = solve_order_parameters(problem) if problem.prior.functions.linear else density
    check_overlaps(sgd.q.values, limit.q.values)
    if not problem.prior.functions.linear:
        check_mean(sgd.r.values, limit.r.values)
    check_weights(density, sgd)


def check_mean(replicas, limit):
    """Compare along the first axis, for all times and features, and return the standard errors."""
    error = replicas.std(axis=0, ddof=1) / np.sqrt(len(replicas))
    away = np.abs(replicas.mean(axis=0) - limit) / error
    assert away.max() < STANDARD_ERRORS  # false-alarm rate in the module's docstring
    return error


def check_overlaps(q, limit):
    assert q[:, 0] == pytest.approx(np.broadcast_to(limit[0], q[:, 0].shape), abs=1e-6)  # tolerance of the density
    error = check_mean(q[:, 1:], limit[1:])
    moved = np.abs(limit[-1] - limit[0]) / error[-1]
    assert moved.max() > 2 * STANDARD_ERRORS  # a limit in which nothing moves would be refused


def check_weights(density, sgd):
    """W1 within thrice the mean distance of a sample from its own law, which chance exceeds less than once in 1000."""
    found = distances([Result.of(density), Result.of(sgd.isel(snapshot_time=[0, -1]))], [(0, 1)])
    assert (found["W1"] < 3 * found["W1_expected"]).all()
    assert np.nanmax(found["W1_given_u"] / found["W1_expected_given_u"]) < 3
    # the density of the start would be further away: groups of u see the overlap move
    at_start = {name: density[name].isel(time=[0] * density.sizes["time"]) for name in ("P", "P_w")}
    stale = density.assign({name: values.assign_coords(time=density["time"]) for name, values in at_start.items()})
    last = sgd.isel(snapshot_time=[-1])
    older = distances([Result.of(stale), Result.of(last)], [(0, 1)])["W1_given_u"]
    assert np.nanmax(older) > 1.5 * np.nanmax(found["W1_given_u"][:, -1])
