"""Of 95 % intervals that `meanfield.fit` gives, 95 in 100 hold the number with which runs were made.

Five hundred experiments on a linear neuron, of which learning rate and second moment are estimated, and as many on an
update rule, of which rate and noise are. Each is eight runs of SGD at N = 2,000, by the chain of overlaps, which is
exactly SGD in law, with a seed of its own. With 1,000 experiments chance alone moves the
share of intervals by 0.5 % or so. Rows are kept in data/runs/fit/coverage.jsonl as they end, and not done again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import norm

import meanfield
from meanfield.problems.problem_keys import value_of
from meanfield.process.cores import one_thread
from validation import OUTPUT
from validation.rows import Row, measure
from validation.study import Statement, Study

ROWS = OUTPUT / "fit" / "coverage.jsonl"

EXPERIMENTS, FIRST_SEED = 500, 20_000

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


def experiment(task: str) -> Row:
    """Deviations of the estimates of an experiment in standard errors, and its verdict."""
    name, _, seed = task.partition(" ")
    make, keys = SETUPS[name]
    problem = meanfield.with_value(make(), "particles.seed", int(seed))
    true = np.array([value_of(problem, key) for key in keys])
    with one_thread():
        runs = meanfield.simulate_sgd(problem, workers=1)
        found = meanfield.fit(problem, runs, keys)
    half = 0.5 * (found["upper"] - found["lower"]).values
    away = (found["estimate"].values - true) / half
    return {"away": (norm.ppf(0.975) * away).tolist(), "agrees": found.attrs["verdict"] == "AGREES"}


def numbers() -> xr.Dataset:
    """Rows of all experiments."""
    tasks = [f"{name} {FIRST_SEED + seed}" for seed in range(EXPERIMENTS) for name in SETUPS]
    rows = measure(experiment, tasks, [ROWS])
    found = [[rows[f"{name} {FIRST_SEED + seed}"] for seed in range(EXPERIMENTS)] for name in SETUPS]
    away = np.array([[row["away"] for row in of_one] for of_one in found])
    agrees = np.array([[row["agrees"] for row in of_one] for of_one in found])
    dims = ("setup", "experiment")
    return xr.Dataset(
        {"away": ((*dims, "estimate"), away), "agrees": (dims, agrees.astype(int))}, {"setup": list(SETUPS)}
    )


def judge(found: xr.Dataset) -> list[Statement]:
    """Whether intervals and verdicts are right as often as they say."""
    inside = np.abs(found["away"].values) <= norm.ppf(0.975)
    each = [
        f"{keys[k]} {100 * inside[i, :, k].mean():.1f} %" for i, (_, keys) in enumerate(SETUPS.values()) for k in (0, 1)
    ]
    share, agrees = float(inside.mean()), float(found["agrees"].mean())
    return [
        Statement(
            "95 % intervals hold the true number in 93 to 97 % of experiments",
            "ours",
            0.93 <= share <= 0.97,
            f"{100 * share:.1f} % of {inside.size} intervals; {', '.join(each)}",
        ),
        Statement(
            "the fitted limit agrees with runs of its problem in at least 93 % of experiments",
            "ours",
            agrees >= 0.93,
            f"{100 * agrees:.1f} % of {found['agrees'].size}",
        ),
    ]


def draw(found: xr.Dataset) -> Figure:
    """Deviations in standard errors beside the normal law."""
    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    for axes, (name, (_, keys)), away in zip(
        figure.subplots(1, 2, sharey=True), SETUPS.items(), found["away"].values, strict=True
    ):
        x = np.linspace(-4.0, 4.0, 201)
        for key, each in zip(keys, away.T, strict=True):
            axes.hist(
                each, bins=np.linspace(-4.0, 4.0, 33), density=True, histtype="step", label=key.rpartition(".")[2]
            )
        axes.plot(x, norm.pdf(x), color="0.3", label="normal law")
        axes.set(title=name, xlabel="estimate - true number, in standard errors")
        axes.legend(fontsize="small")
    return figure


STUDY = Study(numbers, judge, draw, must_hold=True)
