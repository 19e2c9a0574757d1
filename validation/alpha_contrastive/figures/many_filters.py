"""Many filters: the best network, and what training makes of K filters, against K and the temperature.

The objective G of a network is concave in the law of its filters, so that the best network is known with a certificate.
How many filters it needs grows as the temperature of the Gaussian importance falls; under the uniform importance one is
enough, with ReLU as without. Training is another matter: each filter climbs to a local optimum of its own, more filters
collect more of them, and networks of many filters come to rest below the optimum, far below it where the importance is
nearly uniform. Five points in the plane, ReLU; SGD in batches of 500 until t = 400, from random filters; at tau = 0.03
many filters are still on their way then.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.plotting import COLOURS, MARKERS, curve_style
from validation.alpha_contrastive.figures.one_layer import (
    FIVE,
    Array,
    gaussian_objective,
    make_problem,
    push,
    train_filters,
)
from validation.study import Statement, Study, within_errors

TEMPERATURES = 10.0, 1.0, 0.3, 0.1, 0.03
WIDTHS, NETWORKS = (1, 2, 5, 10, 30, 100), 12
"""Numbers of filters K, and of networks of each."""

BATCH, RATE, STOP = 500, 0.1, 400.0

DISTINCT_ANGLE = 0.02
"""Angle from which two filters at rest are different."""

CERTIFIED = 1e-8
"""Certificate, relative to G, of an optimum that is known."""

CHANCE_K, CHANCE_NETWORKS, CHANCE_STOP, CHANCE_STEPS = (30, 100, 300, 1000), 40, 1.0, 50
"""Numbers of filters that are held against the density, networks of each, time, and steps until then."""


def theory() -> xr.Dataset:
    """Best networks, best single filters, and a moment of the density at which random filters are held."""
    G, gap, atoms, single = (np.zeros(1 + len(TEMPERATURES)) for _ in range(4))
    for j, tau in enumerate((np.inf, *TEMPERATURES)):
        problem = _problem(tau)
        best = meanfield.solve(problem, "optimal_filters")
        G[j], gap[j], atoms[j] = float(best["G"]), float(best["certificate_gap"]), best.sizes["atom"]
        single[j] = float(meanfield.solve(problem, "critical_points")["objective"].max())
    density = meanfield.solve(_problem(0.3, time={"stop": CHANCE_STOP, "outputs": 2}), "density").isel(time=-1)
    return xr.Dataset(
        {
            "G": ("temperature", G, {"long_name": "objective of the best network"}),
            "gap": ("temperature", gap, {"long_name": "its certificate"}),
            "atoms": ("temperature", atoms, {"long_name": "filters of the best network"}),
            "single": ("temperature", single, {"long_name": "objective of the best filter alone"}),
            "moment": ((), float(density["moment_cos"][1]), {"long_name": "E[cos 2 theta] of the density"}),
            "moment_error": ((), float(density["moment_cos_error"][1])),
        },
        {"temperature": [np.inf, *TEMPERATURES]},
    )


def _problem(tau: float, **tables: object) -> meanfield.alpha_contrastive.Problem:
    if np.isinf(tau):
        return make_problem("relu", FIVE.table, **tables)
    return make_problem("relu", FIVE.table, "gaussian", temperature=tau, **tables)


def simulate() -> xr.Dataset:
    """SGD of networks from random filters: objectives at the end, and numbers of different filters."""
    shape = 1 + len(TEMPERATURES), len(WIDTHS), NETWORKS
    G, different, rng = np.zeros(shape), np.zeros(shape), np.random.default_rng(0)
    starts = {K: rng.uniform(-np.pi, np.pi, (NETWORKS, K)) for K in WIDTHS}
    for i, tau in enumerate((np.inf, *TEMPERATURES)):
        for k, K in enumerate(WIDTHS):
            ends = train_filters(FIVE, starts[K], tau, STOP, RATE, BATCH, seed=K)
            G[i, k] = gaussian_objective(FIVE, ends, tau)
            different[i, k] = [count_different(row) for row in ends]
    moments = np.array([[moment_of(K, seed) for seed in range(CHANCE_NETWORKS)] for K in CHANCE_K])
    return xr.Dataset(
        {
            "sgd_G": (("temperature", "K", "network"), G, {"long_name": "objective after training"}),
            "sgd_different": (("temperature", "K", "network"), different, {"long_name": "different filters"}),
            "sgd_moment": (("filters", "sample"), moments, {"long_name": "average of cos 2 theta over K filters"}),
        },
        {"temperature": [np.inf, *TEMPERATURES], "K": list(WIDTHS), "filters": list(CHANCE_K)},
    )


def count_different(theta: Array) -> int:
    """Number of groups of angles with more than `DISTINCT_ANGLE` between them."""
    theta = np.sort(np.mod(theta, 2.0 * np.pi))
    gaps = np.diff(theta, append=theta[0] + 2.0 * np.pi)
    return max(1, int(np.count_nonzero(gaps > DISTINCT_ANGLE)))


def moment_of(K: int, seed: int) -> float:
    """Average of cos 2 theta over filters that start at random, without the noise of batches (Heun's method)."""
    theta = np.random.default_rng([K, seed]).uniform(-np.pi, np.pi, (1, K))
    dt, p = CHANCE_STOP / CHANCE_STEPS, FIVE.probabilities[None]
    for _ in range(CHANCE_STEPS):
        first = push(FIVE, theta, 0.3, p)
        theta = theta + 0.5 * dt * (first + push(FIVE, theta + dt * first, 0.3, p))
    return float(np.cos(2.0 * theta).mean())


def judge(numbers: xr.Dataset) -> list[Statement]:
    """How many filters the best network has, and what is left to it by training."""
    atoms = numbers["atoms"].values.astype(int)
    relative = numbers["gap"] / numbers["G"]
    gain = (numbers["G"] / numbers["single"]).values
    found = [
        Statement(
            "under the uniform importance the best network has one filter, with ReLU too",
            "theory, section 4",
            atoms[0] == 1,
            f"{atoms[0]}",
        ),
        Statement(
            "the smaller the temperature, the more filters the best network has",
            "theory, section 4",
            bool(np.all(np.diff(atoms) >= 0)) and atoms[-1] > atoms[1],
            f"{', '.join(map(str, atoms[1:]))} from tau = {TEMPERATURES[0]:g} to {TEMPERATURES[-1]:g}",
        ),
        Statement(
            "no network is better, up to a certificate",
            "ours",
            bool(np.all(relative < CERTIFIED)),
            f"at most {float(relative.max()):.0e} of G is missing",
        ),
        Statement(
            "a non-uniform importance makes several patterns better than any one",
            "paper, section 3.2",
            bool(gain[-1] > 1.01),
            ", ".join(f"{x:.3f}" for x in gain[1:]) + " times the objective of the best filter alone",
        ),
    ]
    return found + (_judge_sgd(numbers) if "sgd_G" in numbers else [])


def _judge_sgd(numbers: xr.Dataset) -> list[Statement]:
    share = (numbers["sgd_G"] / numbers["G"]).sel(K=WIDTHS[-1])
    mean, error = share.mean("network").values, (share.std("network", ddof=1) / np.sqrt(NETWORKS)).values
    different = numbers["sgd_different"].mean("network")
    collected = different.min("temperature").values
    listed = "; ".join(
        f"{_name(tau)}: " + ", ".join(f"{x:.1f}" for x in row)
        for tau, row in zip(numbers["temperature"].values, different.values, strict=True)
    )
    spread = numbers["sgd_moment"].std("sample", ddof=1).values
    slope = np.polyfit(np.log(CHANCE_K), np.log(spread), 1)[0]
    # the slope of log standard deviations of n samples each, whose errors are 1/sqrt(2 (n - 1))
    centred = np.log(CHANCE_K) - np.log(CHANCE_K).mean()
    slope_error = 1.0 / np.sqrt(2.0 * (CHANCE_NETWORKS - 1) * np.sum(centred**2))
    bias = abs(float(numbers["sgd_moment"].sel(filters=CHANCE_K[-1]).mean()) - float(numbers["moment"]))
    allowed = np.hypot(spread[-1] / np.sqrt(CHANCE_NETWORKS), float(numbers["moment_error"]))
    return [
        Statement(
            "more filters collect more local optima",
            "paper, sections 1 and 3.3",
            bool(np.all(np.diff(collected) >= 0.0)) and collected[-1] > collected[0],
            f"different filters at K = {', '.join(map(str, WIDTHS))}, {listed}",
        ),
        Statement(
            f"training of K = {WIDTHS[-1]} filters comes to rest below the optimum at every temperature",
            "theory, section 4",
            bool(np.all(mean + 3.0 * error < 1.0)),
            "shares of the best G: "
            + ", ".join(f"{_name(tau)} {x:.3f}" for tau, x in zip(numbers["temperature"].values, mean, strict=True)),
        ),
        Statement(
            "and the farther below, the larger the temperature",
            "theory, section 4",
            bool(np.all(np.diff(mean) > 0.0)),
            f"{mean[0]:.3f} with the uniform importance, {mean[-1]:.3f} at tau = {TEMPERATURES[-1]:g}",
        ),
        within_errors(
            "averages over K random filters scatter about the density as K^-1/2",
            "theory, section 4",
            np.array([abs(slope + 0.5) / slope_error, bias / allowed]),
            3.5,
        ),
    ]


def _name(tau: float) -> str:
    return "uniform" if np.isinf(tau) else f"tau = {tau:g}"


def draw(numbers: xr.Dataset) -> Figure:
    """Objectives of trained networks against K, with the best ones; and different filters of these."""
    figure = Figure(figsize=(9.0, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, tau in enumerate(numbers["temperature"].values):
        style = curve_style(i) | {"marker": MARKERS[i], "markersize": 4}
        share = numbers["sgd_G"].isel(temperature=i) / float(numbers["G"][i])
        left.errorbar(
            WIDTHS, share.mean("network"), share.std("network") / np.sqrt(NETWORKS), label=_name(tau), **style
        )
        right.plot(WIDTHS, numbers["sgd_different"].isel(temperature=i).mean("network"), **style)
        if i:
            right.plot(
                [WIDTHS[-1] * 1.35],
                [numbers["atoms"][i]],
                MARKERS[i],
                color=COLOURS[i],
                markerfacecolor="none",
                markersize=8,
            )
    left.axhline(1.0, color="black", lw=0.8)
    left.set(xscale="log", xlabel="number of filters $K$", ylabel="objective after training / best network")
    right.set(
        xscale="log", xlabel="number of filters $K$ (open, right: of the best network)", ylabel="different filters"
    )
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=6, fontsize="small")
    return figure


STUDY = Study(theory, judge, draw, simulate)
