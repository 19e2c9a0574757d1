"""Fixed points of four and five features: time, and whether random starts find any that the search has not.

Problems are drawn at random: an activation, a learning rate, and a law for each feature, which some features share.
Against each list stand the ends of 1,000 random starts of MINPACK's hybrid method, of which some begin in the planes
in which features are not learnt. A start that ends at a state that is not in the list is a miss, unless the state is
of a continuum, such as ReLU has for equal second moments, of which the list holds single points. The first three
were hard for earlier searches.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from scipy.optimize import root

from meanfield.families.contrastive.fixed_points.points import FixedPoints, find_fixed_points
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.problem import Problem
from validation.benchmarks.table import Row, Table

STARTS = 1000

Case = tuple[str, float, list[dict[str, object]]]
"""Activation, learning rate, and the law of each feature."""

FIRST: Case = (
    "tanh",
    0.02,
    [{"law": "two_point", "values": [-0.5, 2.0], "probability": 0.8}] * 4
    + [{"law": "three_point", "second_moment": 1.3, "fourth_moment": 4.0}],
)
"""Problem whose state (0.136, 0.136, 0.136, 0.136, -0.807) few starts find."""

FIVE_EQUAL: Case = ("tanh", 0.0033, [{"law": "two_point", "values": [-1.59, 1.24], "probability": 0.5}] * 5)
"""Problem of 2,163 states whose features have a mean, so that none of them can be left out."""

BRANCHED: Case = (
    "tanh",
    0.0784,
    [{"law": "two_point", "values": [-1.95, 0.5], "probability": 0.2041}] * 3
    + [{"law": "three_point", "second_moment": 1.35, "fourth_moment": 3.98}],
)
"""Problem with pairs of states that have just branched off more symmetric ones; indices do not tell of both."""


def drawn_law(rng: np.random.Generator) -> dict[str, object]:
    """A law at random; that of two values has a mean in half of the cases."""
    low, high, second = (round(float(x), 2) for x in rng.uniform([0.5, 0.5, 0.8], [2.0, 2.0, 1.6]))
    centred = high / (low + high) if rng.random() < 0.5 else round(float(rng.uniform(0.2, 0.8)), 2)
    return [
        {"law": "two_point", "values": [-low, high], "probability": centred},
        {"law": "three_point", "second_moment": second, "fourth_moment": round(second**2 * rng.uniform(1.5, 5.0), 2)},
        {"law": "rademacher", "second_moment": second},
    ][rng.integers(3)]


def drawn(seed: int, features: int) -> Case:
    """A problem at random, whose features share one to three laws."""
    rng = np.random.default_rng([seed, features])
    laws = [drawn_law(rng) for _ in range(rng.integers(1, 4))]
    rate = round(float(10.0 ** rng.uniform(-2.5, -1.0)), 4)
    activation = str(rng.choice(["tanh", "relu", "quadratic"]))
    return activation, rate, [laws[rng.integers(len(laws))] for _ in range(features)]


def points_of(activation: str, rate: float, laws: list[dict[str, object]]) -> FixedPoints:
    """All fixed points of a problem that the search finds."""
    features = [{"hidden": law, "initial_overlap": 0.1} for law in laws]
    model = {"activation": activation, "learning_rate": rate, "batch_size": 10}
    problem = Problem.model_validate({"model": model, "features": features, "time": {"stop": 1.0}})
    return find_fixed_points(VectorField(problem))


def missed(points: FixedPoints) -> int:
    """Number of random starts that end at states that are not among the points."""
    field, rng, count = points.field, np.random.default_rng(0), 0
    for _ in range(STARTS):
        start = rng.normal(size=field.features) * (rng.random(field.features) < 0.6)
        start *= rng.random() / max(float(np.linalg.norm(start)), 1e-9)
        end = root(lambda q: np.nan_to_num(field(q) / points.size, nan=1e3), start, tol=1e-13)
        arrived = np.abs(end.fun).max() < 1e-10 and np.linalg.norm(end.x) <= 1.0
        if arrived and np.linalg.norm(points.q - end.x, axis=1).min() > 1e-4:  # roots may be almost double
            rates = np.abs(np.linalg.eigvals(field.jacobian(end.x)))
            count += bool(rates.min() > 1e-6 * rates.max())  # rounding of differences is less
    return count


def row_of(case: Case) -> Row:
    """Time of a search, and what it has missed."""
    activation, rate, laws = case
    started = time.process_time()
    points = points_of(*case)
    seconds = time.process_time() - started
    names = [" ".join(f"{x:.3g}" if isinstance(x, float) else str(x) for x in law.values()) for law in laws]
    which = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
    said = "" if points.complete else ", and the result says that it is not complete"
    note = f"{len(points.points)} states; {missed(points)} of {STARTS:,} starts end elsewhere{said}"
    return Row(f"{activation}, rate {rate:g}, {which}", seconds, "s", required="20 s at most", note=note)


def tables() -> Iterator[Table]:
    """All problems."""
    cases = [FIRST, FIVE_EQUAL, BRANCHED, *(drawn(seed, features) for features in (4, 5) for seed in range(10))]
    # Times are of a processor, and of code that is compiled.
    with ProcessPoolExecutor(initializer=points_of, initargs=("tanh", 0.02, FIRST[2][:2])) as pool:
        rows = tuple(pool.map(row_of, cases))
    yield Table("Fixed points of four and five features", "processor time of one core", rows)
