"""What a schedule of the learning rate leaves of the error of a student of one erf unit under label noise.

A student learns from a teacher of one erf unit, whose outputs have noise of the variance 0.1, until t = 40. A constant
rate leaves the error with which noise holds the weights apart. The best cosine and the best of all tables of eight
rates, linear in between, are searched directly, in the closed equations of Saad and Solla (1995) for one unit, and SGD
confirms them at N = 100,000. The best table leaves less than half of what the best constant rate leaves. It falls like
1/t from the start on: near the teacher, weights come to rest at the rate eta times 2/(pi sqrt 3), and the best rates
are those of 1/(t 2/(pi sqrt 3)), as in the classic law of stochastic approximation.
"""

from functools import cache

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.plotting import COLOURS, MARKERS, place_legend
from meanfield.typing import FloatArray
from validation import OUTPUT
from validation.rate_search import KINDS, Search
from validation.study import Statement, Study, within_errors

STOP = 40.0
START = np.array([0.34, 0.3])
"""Q(0) and R(0)."""

NOISE = 0.1
"""Variance of labels."""

CURVATURE = 2.0 / (np.pi * 3.0**0.5)
"""E[g'(x)^2] at the teacher: weights in other directions come to rest at the rate of learning times this."""

REPLICAS, DIMENSION = 16, 100_000


def problem_of(rate: object) -> meanfield.Problem:
    """Problem with a rate."""
    Q, R = START.tolist()
    return meanfield.Problem(
        family="hidden_manifold",
        inputs={"nonlinearity": "linear", "aspect_ratio": 1.0, "spectrum": {"law": "atoms", "eigenvalues": [1.0]}},
        teacher={"overlap": [[1.0]], "output_weights": [1.0]},
        student={"output_weights": [1.0], "on_teacher": [[R]], "elsewhere": [[Q - R * R]]},
        training={"learning_rate": rate, "output_learning_rate": 0.0, "label_noise": NOISE},
        time={"stop": STOP, "outputs": 41},
        order_parameters={"tolerance": 1e-10},
        particles={"dimension": DIMENSION, "replicas": REPLICAS, "method": "chain"},
    )


def error(y: FloatArray) -> FloatArray:
    """Generalisation error of Q and R."""
    Q, R = y
    overlaps = np.arcsin(Q / (1.0 + Q)) + np.pi / 6.0 - 2.0 * np.arcsin(R / np.sqrt(2.0 * (1.0 + Q)))
    return np.asarray(overlaps / np.pi)


def velocity(rate: float, y: FloatArray) -> FloatArray:
    """Changes of Q and R in time."""
    Q, R = y
    apart, own = np.sqrt(2.0 * (1.0 + Q) - R * R), np.sqrt(1.0 + 2.0 * Q)
    pull = rate * 2.0 / (np.pi * (1.0 + Q))
    left = 2.0 * (1.0 + 2.0 * Q - R * R)
    squares = (
        np.arcsin(Q / (1.0 + 3.0 * Q))
        + np.arcsin((1.0 + 2.0 * (Q - R * R)) / left)
        - 2.0 * np.arcsin(R / np.sqrt(left * (1.0 + 3.0 * Q)))
    )
    noise = rate**2 / own * (4.0 / np.pi**2 * squares + NOISE * 2.0 / np.pi)
    return np.array([2.0 * pull * (R / apart - Q / own) + noise, pull * ((1.0 + Q - R * R) / apart - R / own)])


@cache
def theory() -> xr.Dataset:
    """Best rates of each kind, and errors by the library."""
    search = Search(velocity, START, STOP, lambda y: float(np.log(error(y))), 0.5)
    best = search.best()
    solved = [meanfield.solve_order_parameters(problem_of(search.schedule(kind, x))) for kind, x in best.items()]
    time = solved[0]["time"].values
    return xr.Dataset(
        {
            "rate": (("kind", "time"), [[search.rate_at(*known, t) for t in time] for known in best.items()]),
            "error": (("kind", "time"), [each["generalisation_error"].values for each in solved]),
            "searched": ("kind", [float(error(search.end(*known))) for known in best.items()]),
            "table": ("node", np.exp(best["table"]), {"long_name": "rates of the best table"}),
        },
        {"kind": list(KINDS), "time": time, "node": search.nodes},
    )


def simulate() -> xr.Dataset:
    """Errors of SGD under the schedules of the theory."""
    numbers, runs = theory(), []
    for kind in KINDS:
        table = {"times": numbers["time"].values.tolist(), "values": numbers["rate"].sel(kind=kind).values.tolist()}
        runs.append(meanfield.simulate_sgd(problem_of(table))["generalisation_error"].values)
    return xr.Dataset({"sgd_error": (("kind", "replica", "time"), runs, {"long_name": "error of SGD"})})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """What the final errors say."""
    end = numbers["error"].isel(time=-1)
    constant, cosine, table = end.values.tolist()
    gap = float(np.abs(numbers["searched"] - end).max())
    falls = (numbers["table"] * numbers["node"] * CURVATURE)[1:]
    statements = [
        Statement(
            "the best table leaves less than half of what the best constant rate leaves, and less than the best cosine",
            "ours", table < min(cosine, 0.5 * constant), f"errors {constant:.5f}, {cosine:.5f}, {table:.5f}",
        ),
        Statement("closed equations, in which rates are searched, say the same", "ours", gap < 1e-7, f"{gap:.1g}"),
        Statement(
            "from t = 5.7 on the rates of the best table are within a quarter of 3^(1/2) pi/(2 t)", "ours",
            bool(np.abs(falls - 1.0).max() < 0.25), f"{float(falls.min()):.2f} to {float(falls.max()):.2f} of it",
        ),
    ]  # fmt: skip
    if "sgd_error" in numbers:
        last = numbers["sgd_error"].isel(time=-1)
        away = np.abs(last.mean("replica") - end) / (last.std("replica", ddof=1) / REPLICAS**0.5)
        statements.append(within_errors("SGD with N = 100,000 ends at these errors", "ours", away, 4.0))
    return statements


def draw(numbers: xr.Dataset) -> Figure:
    """Schedules, and errors under them."""
    figure = Figure(figsize=(9.4, 3.8), layout="constrained")
    rates, errors = figure.subplots(1, 2)
    for k, kind in enumerate(KINDS):
        row = numbers.sel(kind=kind)
        rates.semilogy(row["time"], row["rate"], color=COLOURS[k], label=f"best {kind}")
        errors.semilogy(row["time"], row["error"], color=COLOURS[k], label=f"best {kind}")
        if "sgd_error" in numbers:
            errors.plot(
                row["time"][::4], row["sgd_error"].mean("replica")[::4], MARKERS[k], color=COLOURS[k], ms=4, mfc="none"
            )
    later = numbers["time"][3:]
    rates.plot(later, 1.0 / (CURVATURE * later), ":", color="0.3", label=r"$\sqrt{3}\,\pi/2t$")
    errors.plot([], [], "o", color="0.3", ms=4, mfc="none", label=f"SGD, $N = 10^5$, {REPLICAS} runs")
    rates.set(xlabel="time $t$", ylabel=r"learning rate $\eta$", title="schedules")
    errors.set(xlabel="time $t$", ylabel="generalisation error", title="error under them")
    for axes in (rates, errors):
        place_legend(axes)
    return figure


STUDY = Study(theory, judge, draw, simulate, must_hold=True, folder=OUTPUT / "hidden_manifold")
