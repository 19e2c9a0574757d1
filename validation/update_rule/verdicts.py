"""Pairs of methods whose verdicts `validation.verdicts` measures: order parameters and densities of random rules."""

from __future__ import annotations

from functools import partial

import numpy as np

import meanfield
from meanfield.problems.base import Problem
from validation.update_rule import changed_rules
from validation.update_rule.random_rules import TABLES, problem_of
from validation.update_rule.sparse.random_problems import random_problem
from validation.verdicts import Pair, Study


def weights(linear: bool, seed: int) -> Problem:
    """Random rule under a linear prior or another, with weights of runs at the end."""
    problem = random_problem(seed, linear)
    return meanfield.with_value(problem, "particles", {"dimension": 1000, "snapshots": [problem.time.stop]})


def two_students(seed: int) -> Problem:
    """Random rule whose students see the same samples and labels, from other starts, under l1."""
    rng = np.random.default_rng(seed)
    changes = {
        "students": [{"initial_norm": round(norm, 2)} for norm in rng.uniform(0.5, 1.0, 2)],
        "features[0].initial_overlap": np.round(rng.uniform(-0.3, 0.4, 2), 2).tolist(),
        "features[0].coordinate": {"law": "rademacher"},
        "prior": {"name": "l1", "strength": round(rng.uniform(0.1, 0.4), 2)},
        "density": {"tolerance": 2e-3},
        "time": {"stop": 2.0, "outputs": 3},
        "particles": {"dimension": 1000, "snapshots": [2.0]},
    }
    return meanfield.with_values(problem_of("noisy", seed), changes)


STUDY = Study(
    "Order parameters are judged by R, Q and observables at once, with runs of the chain of overlaps, which is "
    "exactly SGD in law, at N = 4,000; densities by R, Q, r, observables, and W1 and KS of the weights, marginal and "
    "given u, with plain SGD at N = 1,000. Rules have random coefficients, starts, and batches of one to three "
    "samples; those of weights also random norms, masks, laws of u and priors.",
    {rule: Pair("order_parameters", partial(problem_of, rule, dimension=4000)) for rule in TABLES}
    | {
        "weights, linear priors": Pair("density", partial(weights, True)),
        "weights, other priors": Pair("density", partial(weights, False)),
        "weights, two students": Pair("density", two_students),
    },
    changed_rules.measure,
)
