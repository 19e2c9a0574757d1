"""Convergence of SGD to its limit: every finite-size error falls with the power of N that theory gives it.

a. Over replicas the overlap q has a spread of order N^(-1/2). The limit is dq/dt = b(q); with J = b'(q) and S, the
   variance of a step, dC/dt = 2 J C + S predicts the spread sqrt(C/N) (theory.md, section 4).
b. The mean of q is off by beta/N. Expanding a step to the next order, dbeta/dt = J beta + b'' C/2 + b_1 - b' b/2: the
   spread feels the curvature of b, a step has a drift b_1/N^2 of its own, and N t steps are an Euler method.
c. Weights under an l1 prior are as far from the predicted density, in the Wasserstein distance W1, as N independent
   samples of it are, given that SGD keeps |w|^2 = N: that takes away 9 %.

A plain mean over replicas cannot show b: at N = 10^8 the spread is 4000 times the error, and it would take 10^9
replicas to see it. So each replica of the chain carries the linearised fluctuation along,

    delta_{k+1} = (1 + J(q_t)/N) delta_k + dM_k,

where q_t is the limit and dM_k the step of q to leading order minus its exact mean given q. Then E[delta] = 0 exactly
and E[q - delta] = E[q], but q - delta has a spread of order 1/N, as the error has: few replicas resolve it at any N.

Rounding at N = 10^8: a step that is rounded in another way, with the same random numbers, changes q by 6e-12 after 5e6
steps, always to one side, so by 3e-11 after all 2e7; delta changes by 1e-16. The error of the mean is 7e-9, and its
standard error 2e-10.

Prints what holds, and writes validation/contrastive/finite_size.png and data/runs/finite_size.nc.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import meanfield
from meanfield.comparison.distributions import marginal_distribution
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.numerics.distances import expected_wasserstein, wasserstein
from meanfield.plotting import COLOURS, place_legend
from meanfield.problems.file import parse_problem
from meanfield.results.result import Result
from validation import OUTPUT
from validation.contrastive.linearised import coupled_replicas, solve_corrections
from validation.study import Statement, Study

Array = np.ndarray

OVERLAP = """
title = "Finite size: the overlap"
model = { activation = "quadratic", learning_rate = 0.1, batch_size = 10 }
features = [{ hidden = { law = "two_point", values = [-2.0, 2.0] }, initial_overlap = 0.3 }]
time = { stop = 0.2, outputs = 2 }
"""
# tau -> a tau, m -> a m only rescales time by a: with large ones few steps reach the relaxed state
WEIGHTS = """
title = "Finite size: the weights"
model = { activation = "quadratic", learning_rate = 8.0, batch_size = 4000 }
features = [{ hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }, initial_overlap = 0.5 }]
prior = { name = "l1", strength = 2.0 }
time = { stop = 0.03, outputs = 2 }
density = { cells = 3200, feature_nodes = 61, steps = 800 }
"""
CHAIN = {10**2: 4096, 10**3: 1024, 10**4: 1024, 10**5: 1024, 10**6: 192, 10**7: 64, 10**8: 16}
"""Number of replicas with their linearised fluctuation, by N."""
DIRECT = {10**2: 10**6, 10**3: 2 * 10**5, 10**4: 5 * 10**4}
"""Number of replicas of the chain alone, by N, whose plain mean still shows the error."""
WEIGHED = {10**2: 512, 10**3: 512, 10**4: 128, 10**5: 24, 10**6: 4}
"""Number of replicas with their weights, by N."""
NEXT_ORDER = 3.0
"""Relative error of each point by the next order in 1/N, times N, besides its statistical error: powers hold up to a
factor 1 + O(1/N), about 0.97 at N = 100."""
SETTLED = 10**4
"""Least N for which N (q - delta) has the spread of its limit law; below, heavy tails of single steps add to it."""
STANDARD_ERRORS = 3.0
THEORY = "theory, section 4"

LONG_NAMES = {
    "q_limit": "overlap q of the limit at the final time",
    "C": "N times the predicted variance of q",
    "beta": "N times the predicted error of the mean of q",
    "spread": "standard deviation of q over replicas",
    "bias": "mean of q - delta over replicas minus the limit",
    "rest_spread": "standard deviation of q - delta over replicas",
    "delta": "mean of delta over replicas, 0 in theory",
    "direct_bias": "mean of q over many more replicas minus the limit",
    "W1": "Wasserstein-1 distance of weights and density, mean over replicas",
    "W1_expected": "its mean for N samples of the density with |w|^2 = N",
    "W1_independent": "its mean for N independent samples of the density",
}


def problem_at(text: str, N: int, replicas: int, **settings: Any) -> Problem:
    """A problem at one N; every N has a seed of its own, and `simulate_sgd` others than `coupled_replicas`."""
    problem = parse_problem(text)
    settings = {"dimension": N, "replicas": replicas, "seed": round(math.log10(N))} | settings
    return meanfield.with_values(problem, {f"particles.{key}": value for key, value in settings.items()})


def standard_deviation(x: Array) -> tuple[float, float]:
    """With its standard error, which heavy tails make larger than that of Gaussian samples."""
    centred = x - x.mean()
    variance = centred @ centred / (len(x) - 1)
    kurtosis = max(float(np.mean(centred**4) / variance**2), 3.0)  # of few samples it comes out too small
    return math.sqrt(variance), math.sqrt(variance * (kurtosis - 1) / (4 * len(x)))


def measure_overlap(q_limit: float) -> xr.Dataset:
    """Spread and error of the mean with their standard errors, for all N of `CHAIN` and `DIRECT`."""
    rows, direct = [], []
    for N, replicas in CHAIN.items():
        q, delta = coupled_replicas(problem_at(OVERLAP, N, replicas))
        rest, mean_error = q - delta, delta.std(ddof=1) / math.sqrt(replicas)
        rows.append(
            [*standard_deviation(q), rest.mean() - q_limit, *standard_deviation(rest), delta.mean(), mean_error]
        )
    for N, replicas in DIRECT.items():
        problem = problem_at(OVERLAP, N, replicas, seed=100 + N, record="statistics")
        result = meanfield.simulate_sgd(problem).isel(time=-1, feature=0, feature_=0)
        direct.append([result.q_mean - q_limit, math.sqrt(result.q_covariance / N / replicas)])
    names = ("spread", "spread_error", "bias", "rest_spread", "rest_spread_error", "delta", "delta_error")
    data = xr.Dataset(coords={"N": list(CHAIN), "N_direct": list(DIRECT), "replicas": ("N", list(CHAIN.values()))})
    data = data.assign({name: ("N", column) for name, column in zip(names, np.transpose(rows), strict=True)})
    for name, column in zip(("direct_bias", "direct_bias_error"), np.transpose(direct), strict=True):
        data[name] = "N_direct", column
    # one limit law for all large N: 16 replicas do not tell its spread, which has heavy tails
    settled = data.where(data.N >= SETTLED, drop=True)
    pooled = np.sqrt(((settled.N * settled.rest_spread) ** 2).weighted(settled.replicas - 1).mean())
    data["bias_error"] = xr.where(data.N >= SETTLED, pooled / data.N, data.rest_spread) / np.sqrt(data.replicas)
    return data


def measure_weights() -> xr.Dataset:
    """Mean W1 between the weights of a replica and the density, and the mean of N independent samples."""
    density = meanfield.solve_density(problem_at(WEIGHTS, 1000, 1))
    t, edges, w = float(density.time[-1]), edges_of(density), density.w.values
    F, variance = marginal_distribution(Result.of(density), t)
    # samples of given length: the part of 1{w <= x} that goes with w^2 does not fluctuate
    along = np.append(0.0, np.cumsum(np.diff(F) * (w**2 - 1)))
    on_sphere = np.clip(variance - along**2 / (np.diff(F) @ (w**2 - 1) ** 2), 0, None)
    distances = []
    for N, replicas in WEIGHED.items():
        sgd = meanfield.simulate_sgd(problem_at(WEIGHTS, N, replicas, method="projected", snapshots=(t,)))
        distances.append(np.array([wasserstein(x, np.ones(N), edges, F) for x in sgd["weights"].values[:, 0]]))
    mean, replicas = np.array([[d.mean(), len(d)] for d in distances]).T
    # sqrt(N) W1 has a limit law, so that one relative deviation serves all N: four replicas do not tell their own
    relative = np.sqrt(sum(((d / d.mean() - 1) ** 2).sum() for d in distances) / sum(replicas - 1))
    columns = {"W1": mean, "W1_error": mean * relative / np.sqrt(replicas)}
    for name, law in (("W1_independent", variance), ("W1_expected", on_sphere)):
        columns[name] = [expected_wasserstein(N, edges, law) for N in WEIGHED]
    return xr.Dataset({k: ("N_weights", v) for k, v in columns.items()}, {"N_weights": list(WEIGHED)})


class Fit(NamedTuple):
    """y = prefactor N^slope by weighted least squares of log y, beside the power that theory gives."""

    slope: float
    error: float
    chi_squared: float
    freedom: int
    theory: float

    @property
    def holds(self) -> bool:
        """Whether the slope is that of the theory within its error."""
        return abs(self.slope - self.theory) <= STANDARD_ERRORS * self.error

    def __str__(self) -> str:
        return f"{self.slope:.4f} ± {self.error:.4f} (chi2 {self.chi_squared:.1f} of {self.freedom})"


def fit_slope(N: xr.DataArray, values: xr.DataArray, error: xr.DataArray, theory: float) -> Fit:
    """Errors are independent and known, so that the slope's follows from them alone."""
    x, y, weight = np.log(N.values), np.log(abs(values.values)), (values / error).values ** 2
    centred = x - np.average(x, weights=weight)
    precision = np.sum(weight * centred**2)
    slope = np.sum(weight * centred * y) / precision
    rest = y - np.average(y, weights=weight) - slope * centred
    return Fit(float(slope), float(precision**-0.5), float(weight @ rest**2), len(x) - 2, theory)


def fit_all(data: xr.Dataset) -> dict[str, Fit]:
    """All slopes."""
    settled = data.where(data.N >= SETTLED, drop=True)
    return {
        "spread": fit_slope(data.N, data.spread, with_next_order(data, "spread"), -0.5),
        "bias": fit_slope(data.N, data.bias, with_next_order(data, "bias"), -1.0),
        "rest_spread": fit_slope(settled.N, settled.rest_spread, settled.rest_spread_error, -1.0),
        "W1": fit_slope(data.N_weights, data.W1, with_next_order(data, "W1"), -0.5),
    }


def ratio_to(theory: xr.DataArray, values: xr.DataArray, error: xr.DataArray) -> tuple[float, float]:
    """Weighted mean of |values|/theory and its standard error."""
    weight = (theory / error) ** 2
    return float((abs(values) / theory).weighted(weight).mean()), float(weight.sum() ** -0.5)


def measure() -> xr.Dataset:
    """All numbers of SGD and of the theory."""
    q_limit, C, beta = solve_corrections(problem_at(OVERLAP, 100, 1))
    data = xr.merge([measure_overlap(q_limit), measure_weights()]).assign(q_limit=q_limit, C=C, beta=beta)
    for name, text in LONG_NAMES.items():
        data[name].attrs["long_name"] = text
    for name, fit in fit_all(data).items():
        data[name].attrs |= {"slope": fit.slope, "slope_error": fit.error}
    return data


def judge(data: xr.Dataset) -> list[Statement]:
    """Powers of N, what stands before them, and the means on which they rest."""
    fits, statements = fit_all(data), []
    for name, what in (
        ("spread", "the spread of q falls with the power -1/2"),
        ("bias", "the error of the mean of q falls with the power -1"),
        ("rest_spread", f"that of q - delta with -1, from N = {SETTLED} on"),
        ("W1", "W1 of weights and density falls with the power -1/2"),
    ):
        statements.append(Statement(what, THEORY, fits[name].holds, str(fits[name])))
    for name, what, theory in (
        ("spread", "the spread is that of the linear noise", np.sqrt(data.C / data.N)),
        ("bias", "the error of the mean is that of the next order", abs(data.beta) / data.N),
        ("W1", "W1 is that of samples with |w|^2 = N", data.W1_expected),
    ):
        ratio, error = ratio_to(theory, data[name], with_next_order(data, name))
        holds = abs(ratio - 1) <= STANDARD_ERRORS * error
        statements.append(Statement(what, THEORY, holds, f"{ratio:.4f} ± {error:.4f} of it"))
    few = data.sel(N=data.N_direct.values)
    error = np.hypot(few.bias_error.values, data.direct_bias_error.values)
    for what, away in (
        ("E[delta] = 0 at every N", data.delta / data.delta_error),
        ("means with and without delta agree", (few.bias.values - data.direct_bias) / error),
    ):
        worst = float(abs(away).max())
        holds = worst <= STANDARD_ERRORS
        statements.append(Statement(what, "ours", holds, f"{worst:.1f} standard errors at most"))
    return statements


def with_next_order(data: xr.Dataset, name: str) -> xr.DataArray:
    """Standard errors of a variable that follows its power up to a relative NEXT_ORDER/N."""
    N = data[data[name].dims[0]]
    return np.hypot(data[f"{name}_error"], NEXT_ORDER / N * abs(data[name]))


def plot(data: xr.Dataset) -> Figure:
    """Each quantity against N, with what theory says, and below it their ratio."""
    figure, axes = plt.subplots(2, 3, figsize=(10.4, 5.6), sharex="col", height_ratios=[3, 1.1], layout="constrained")
    fits = fit_all(data)
    N, blue, red, green, grey = data.N.values, *COLOURS[:3], "0.45"
    panels = (
        ("spread", "N", "a", "spread of the overlap $q$", "standard deviation over replicas", np.sqrt(data.C / data.N),
         r"linear noise, $\sqrt{C/N}$", blue),
        ("bias", "N", "b", "error of the mean overlap", r"$|\,\mathrm{E}\,q_N(t)-q(t)\,|$", abs(data.beta) / data.N,
         r"next order, $|\beta|/N$", red),
        ("W1", "N_weights", "c", "distance of weights and density", "Wasserstein distance $W_1$", data.W1_expected,
         r"$N$ samples with $|w|^2=N$", green),
    )  # fmt: skip
    for (upper, lower), (name, dim, letter, title, label, theory, says, colour) in zip(axes.T, panels, strict=True):
        sizes, y, error = data[dim].values, abs(data[name]).values, data[f"{name}_error"].values
        style = {"fmt": "o", "ms": 6, "capsize": 3, "color": colour, "zorder": 3}
        upper.plot(sizes, theory, color="black", lw=1.2, label=says)
        upper.errorbar(sizes, y, yerr=error, label="SGD" if name != "bias" else r"SGD, mean of $q-\delta$", **style)
        lower.axhline(1, color="black", lw=1.2)
        lower.errorbar(sizes, y / theory, yerr=error / theory, **style)
        fit = fits[name]
        text = f"slope ${fit.slope:.4f} \\pm {fit.error:.4f}$\ntheory ${'-1' if fit.theory == -1 else '-1/2'}$"
        upper.text(0.05, 0.07, text, transform=upper.transAxes, linespacing=1.6)
        upper.set(xscale="log", yscale="log", ylabel=label)
        upper.yaxis.set_minor_formatter(NullFormatter())
        upper.set_title(f"{letter}   {title}", loc="left", fontweight="bold", fontsize=10)
        lower.set(xlabel="dimension $N$", ylabel="SGD / theory")
        for ax in (upper, lower):
            ax.grid(alpha=0.25, lw=0.6)
            ax.spines[["top", "right"]].set_visible(False)
    upper, lower = axes[:, 1]
    direct, beta = data.N_direct.values, abs(float(data.beta))
    style = {"fmt": "s", "ms": 9, "mfc": "none", "capsize": 3, "color": COLOURS[5], "zorder": 2}
    y, error = abs(data.direct_bias).values, data.direct_bias_error.values
    upper.errorbar(direct, y, yerr=error, label="SGD, plain mean of many more", **style)
    lower.errorbar(direct, y / beta * direct, yerr=error / beta * direct, **style)
    upper.plot(N, data.spread / np.sqrt(data.replicas), ":", color=grey, label="standard error of the plain mean")
    lower.set_ylim(0.6, 1.15)  # the plain mean at N = 10^4 is known to 18 % only
    axes[0, 2].plot(data.N_weights, data.W1_independent, ":", color=grey, label="$N$ independent samples")
    for ax in axes[0]:
        place_legend(ax)
    return figure


STUDY = Study(measure, judge, plot, must_hold=True, folder=OUTPUT)
