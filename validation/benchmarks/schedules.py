"""What a schedule costs: the same problem with a rate that moves by a millionth, over its time with a constant one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import process_time

import meanfield
from meanfield.problems.problem_keys import value_of
from meanfield.testing.verdicts import rate_key
from validation import ROOT
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import seconds

SMALL = {"particles.dimension": 1000, "particles.replicas": 4, "particles.snapshots": []}
CASES = (
    ("density, quantile frame", "sparse_prior", "density", {}),
    ("density, finite volumes", "sparse_prior", "density", {"density.scheme": "eulerian"}),
    ("order parameters with covariance", "no_prior", "order_parameters", {}),
    ("chain", "no_prior", "particles", {**SMALL, "particles.method": "chain"}),
    ("projected SGD", "sparse_prior", "particles", {**SMALL, "particles.method": "projected"}),
    ("plain SGD", "sparse_prior", "particles", {**SMALL, "particles.method": "plain", "time.stop": 2.0}),
    ("order parameters of a hidden manifold", "committee_machine", "order_parameters", {}),
    ("chain of a hidden manifold", "committee_machine", "particles", {**SMALL, "particles.method": "chain"}),
    (
        "plain SGD of a hidden manifold",
        "committee_machine",
        "particles",
        {**SMALL, "particles.method": "plain", "time.stop": 1.0},
    ),
    ("flow of filters", "nine_points", "population", {}),
)
"""Row, example file, method, and values of keys."""


def moving(problem: meanfield.Problem) -> meanfield.Problem:
    """Problem whose learning rate falls by a millionth."""
    key, stop = rate_key(problem), value_of(problem, "time.stop")
    rate = value_of(problem, key)
    return meanfield.with_value(problem, key, {"times": [0.0, stop], "values": [rate, rate * (1.0 - 1e-6)]})


def tables() -> Iterator[Table]:
    """One row for each method."""
    rows = []
    for name, file, method, values in CASES:
        problem = meanfield.with_values(meanfield.load_problem(ROOT / f"data/problems/{file}.toml"), values)
        options = {"workers": 1} if method == "particles" else {}
        works = [partial(meanfield.solve, each, method, **options) for each in (problem, moving(problem))]
        constant, scheduled = seconds(*works, clock=process_time, rounds=5)
        rows.append(Row(name, 1e3 * scheduled, "ms", "a constant rate", 1e3 * constant, required="ratio at most 1.1"))
    yield Table(
        "A schedule of the learning rate",
        "examples of data/problems; processor time of all threads; medians",
        tuple(rows),
    )
