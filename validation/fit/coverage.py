"""Of 95 % intervals that `meanfield.fit` gives, 95 in 100 hold the number with which runs were made.

Of 1,000 experiments those of even seeds are on a linear neuron, of which learning rate and second moment are
estimated, those of odd seeds on an update rule, of which rate and noise are. Each is eight runs of SGD at N = 2,000, by
the chain of overlaps, which is exactly SGD in law. Chance alone moves the share of intervals by 0.5 % or so. Rows are
kept in data/measured/fit_coverage.jsonl as they end, and not done again. The two intervals of an experiment count as
independent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import binomtest, norm

import meanfield
from meanfield.problems.problem_keys import value_of
from meanfield.process.cores import one_thread
from validation import ROOT
from validation.rows import Row, measure
from validation.study import Statement, Study

ROWS = ROOT / "data/measured/fit_coverage.jsonl"

EXPERIMENTS = 1000

TIME = {"stop": 6.0, "outputs": 7}
PARTICLES = {"method": "chain", "dimension": 2000, "replicas": 8}


def regression(y, s, eps, rate, sigma):  # type: ignore[no-untyped-def]
    """Least squares on labels with noise."""
    return rate * (y + sigma * eps - s)


def neuron() -> Any:
    """A linear neuron that learns one feature."""
    model = {"activation": "linear", "learning_rate": 0.3, "batch_size": 2}
    feature = {"hidden": {"law": "gaussian", "second_moment": 1.6}, "initial_overlap": 0.3}
    return meanfield.Problem(model=model, features=[feature], time=TIME, particles=PARTICLES)


def rule() -> Any:
    """Online linear regression."""
    return meanfield.Problem(
        family="update_rule",
        model={"rule": regression, "rule_parameters": {"rate": 0.4, "sigma": 0.5}},
        data={"normals": ["eps"]},
        features=[{"initial_overlap": 0.3}],
        time=TIME,
        order_parameters={"tolerance": 1e-4},
        particles=PARTICLES,
    )


SETUPS = {
    "neuron": (neuron, ["model.learning_rate", "features[0].hidden.second_moment"]),
    "rule": (rule, ["model.rule_parameters.rate", "model.rule_parameters.sigma"]),
}
"""Problems, and the keys that are estimated."""


def setup_of(seed: int) -> str:
    """Name of the problem of a seed."""
    return list(SETUPS)[seed % len(SETUPS)]


def experiment(task: str) -> Row:
    """Deviations of the estimates of an experiment in standard errors, and its verdict; a task is its seed."""
    make, keys = SETUPS[setup_of(int(task))]
    problem = meanfield.with_value(make(), "particles.seed", int(task))
    true = np.array([value_of(problem, key) for key in keys])
    with one_thread():
        runs = meanfield.simulate_sgd(problem, workers=1)
        found = meanfield.fit(problem, runs, keys)
    half = 0.5 * (found["upper"] - found["lower"]).values
    away = norm.ppf(0.975) * (found["estimate"].values - true) / half
    return {"away": away.round(5).tolist(), "agrees": found.attrs["verdict"] == "AGREES"}


def numbers() -> xr.Dataset:
    """Rows of all experiments."""
    rows = measure(experiment, [str(seed) for seed in range(EXPERIMENTS)], [ROWS])
    seeds = sorted(map(int, rows))
    found = [rows[str(seed)] for seed in seeds]
    arrays = {
        "away": (("seed", "estimate"), [row["away"] for row in found]),
        "agrees": ("seed", [int(row["agrees"]) for row in found]),
    }
    return xr.Dataset(arrays, {"seed": seeds, "setup": ("seed", [setup_of(seed) for seed in seeds])})


def share(hits: np.ndarray) -> str:
    """Count of hits with the 95 % interval of its share."""
    interval = binomtest(int(hits.sum()), hits.size).proportion_ci()
    return f"{hits.sum()} of {hits.size} ({100 * interval.low:.1f} to {100 * interval.high:.1f} %)"


def judge(found: xr.Dataset) -> list[Statement]:
    """Whether intervals and verdicts are right as often as they say."""
    inside = np.abs(found["away"]) <= norm.ppf(0.975)
    each = [
        f"{key} {share(inside.values[found['setup'] == name, k])}"
        for name, (_, keys) in SETUPS.items()
        for k, key in enumerate(keys)
    ]
    agrees = found["agrees"].values
    return [
        Statement(
            "95 % intervals hold the true number in 93 to 97 % of experiments",
            "ours",
            0.93 <= float(inside.mean()) <= 0.97 if len(agrees) == EXPERIMENTS else None,
            f"{share(inside.values)}; {', '.join(each)}",
        ),
        Statement(
            "the fitted limit agrees with runs of its problem in at least 93 % of experiments",
            "ours",
            agrees.mean() >= 0.93 if len(agrees) == EXPERIMENTS else None,
            share(agrees),
        ),
    ]


def draw(found: xr.Dataset) -> Figure:
    """Deviations in standard errors beside the normal law."""
    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    for axes, (name, (_, keys)) in zip(figure.subplots(1, 2, sharey=True), SETUPS.items(), strict=True):
        x = np.linspace(-4.0, 4.0, 201)
        for key, each in zip(keys, found["away"].values[found["setup"] == name].T, strict=True):
            axes.hist(
                each, bins=np.linspace(-4.0, 4.0, 33), density=True, histtype="step", label=key.rpartition(".")[2]
            )
        axes.plot(x, norm.pdf(x), color="0.3", label="normal law")
        axes.set(title=name, xlabel="estimate - true number, in standard errors")
        axes.legend(fontsize="small")
    return figure


STUDY = Study(numbers, judge, draw, must_hold=True)
