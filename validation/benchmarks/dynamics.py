"""How long fixed points, portraits, regions of attraction and branches of the reduced ODEs take, on one core.

Measured is processor time; seconds on the clock, which are more where the machine is shared, are beside what was found.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from meanfield.contrastive import Problem
from meanfield.families.contrastive.fixed_points.attraction import attraction_shares
from meanfield.families.contrastive.fixed_points.branches import continue_fixed_points
from meanfield.families.contrastive.fixed_points.points import find_fixed_points
from meanfield.families.contrastive.fixed_points.portrait import phase_portrait
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.problems.file import parse_problem
from validation.benchmarks.table import Table
from validation.benchmarks.timing import timed_row

GAUSSIAN = '{ law = "gaussian", second_moment = 1.2 }'
THREE_POINT = '{ law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }'
LAPLACE = '{ law = "laplace", second_moment = 1.2 }'
SKEW = '{ law = "two_point", values = [-0.5, 2.0], probability = 0.8 }'


def problem(*laws: str, activation: str = "quadratic") -> Problem:
    features = "".join(f"[[features]]\nhidden = {law}\ninitial_overlap = 0.1\n" for law in laws)
    model = f'[model]\nactivation = "{activation}"\nlearning_rate = 0.02\nbatch_size = 10\n'
    return parse_problem(f"{model}{features}[time]\nstop = 1.0\noutputs = 2\n")


def fixed_points(given: Problem) -> str:
    points = find_fixed_points(VectorField(given))
    return f"{len(points.points)} fixed points, {len(points.stable)} of them stable"


def portrait(given: Problem) -> str:
    result = phase_portrait(given)
    shares = ", ".join(f"{share:.3f}" for share in result["region_share"].values if share > 0)
    return f"plane {result.attrs['plane']}, regions {shares}, table error {float(result['table_error']):.1e}"


def branches(given: Problem, key: str, start: float, stop: float) -> str:
    found = continue_fixed_points(given, key, start, stop)
    return f"{found.sizes['point']} points on {len(np.unique(found['branch']))} branches"


def tables() -> Iterator[Table]:
    paper, three = problem(GAUSSIAN, THREE_POINT), problem(THREE_POINT, THREE_POINT, THREE_POINT)
    shares = find_fixed_points(VectorField(three))
    one = problem(THREE_POINT)
    works = {
        "fixed points, one feature": lambda: fixed_points(one),
        "fixed points, two features (figure 3)": lambda: fixed_points(paper),
        "fixed points, three features": lambda: fixed_points(three),
        "fixed points, four features, tanh": lambda: fixed_points(problem(*[THREE_POINT] * 4, activation="tanh")),
        "fixed points, five features": lambda: fixed_points(problem(*[THREE_POINT] * 5)),
        "fixed points, five features, tanh": lambda: fixed_points(problem(*[THREE_POINT] * 5, activation="tanh")),
        "portrait 60 x 60, figure 3": lambda: portrait(paper),
        "portrait 60 x 60, tanh": lambda: portrait(problem(THREE_POINT, THREE_POINT, activation="tanh")),
        "portrait 60 x 60, whole disc, relu": lambda: portrait(problem(SKEW, THREE_POINT, activation="relu")),
        "portrait 60 x 60, Laplace": lambda: portrait(problem(LAPLACE, THREE_POINT)),
        "shares of 400 directions, three features": lambda: f"{attraction_shares(shares, 0.3)[0].max():.3f}",
        "branches, learning rate, one feature": lambda: branches(one, "model.learning_rate", 0.02, 0.3),
        "branches, learning rate, two features": lambda: branches(paper, "model.learning_rate", 0.02, 0.3),
        "branches, second moment, two features": lambda: branches(paper, "features[0].hidden.second_moment", 0.9, 1.4),
    }
    rows = tuple(timed_row(what, work) for what, work in works.items())
    yield Table("What the reduced ODEs do", "one core; processor time of the second call", rows)
