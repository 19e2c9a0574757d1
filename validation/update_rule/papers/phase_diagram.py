"""How rates and widths may scale with N, as in Veiga et al. (2022): three regimes of two-layer networks.

R. Veiga, L. Stephan, B. Loureiro, F. Krzakala and L. Zdeborova, *Phase diagram of stochastic gradient descent in
high-dimensional two-layer neural networks*, Advances in Neural Information Processing Systems 35 (2022). The mean of K
units erf(s/sqrt 2) learns from the mean of K others with label noise of 0.3, by steps of the rate gamma/K, which is
(250/N)^delta here. Errors are those at t = 40 K/gamma. Left, K = 1: steps that shrink learn all in the end (delta > 0),
those of the size of Saad and Solla stay on a plateau (delta = 0), and longer ones learn nothing; marks are SGD at this
N with two standard errors. Right, against gamma/K: marks of K = 1 are limits, those of K = 2 and 4 closed forms from a
start near the teacher, at rest; the line is gamma sigma^2/(2 pi 3^(1/2) K), by hand for small rates.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import erf

import meanfield
from meanfield.plotting import COLOURS, LINES, MARKERS, place_legend
from validation.study import Statement, Study
from validation.update_rule.papers import erf_networks
from validation.update_rule.papers.cases import LARGEST_AWAY, error, problem, simulated, solved

SIGMA, HORIZON = 0.3, 40.0
RATES = 2.0 ** np.arange(-4, 5)
DIMENSIONS = (250, 1000, 4000)
EXPONENTS = {0.5: r"$\delta = 1/2$", 0.0: r"$\delta = 0$", -0.5: r"$\delta = -1/2$"}
WIDTHS, SMALL = (2, 4), RATES[:5]


def g(x: Any) -> Any:
    """Activation."""
    return erf(x / np.sqrt(2))


def step(y: Any, s: Any, eps: Any, rate: float) -> Any:
    """Gradient of the squared error of one unit."""
    return rate * (g(y) + SIGMA * eps - g(s)) * np.sqrt(2 / np.pi) * np.exp(-s * s / 2)


def half_square(y: Any, s: Any) -> Any:
    """Error on labels without noise."""
    return 0.5 * (g(y) - g(s)) ** 2


unit = meanfield.Rule(step, observables={"error": half_square})


def problem_of(rate: float) -> object:
    """Short weights that know nothing."""
    data, features, students = {"normals": ["eps"]}, [{"initial_overlap": 0.0}], [{"initial_norm": 0.25}]
    tables: dict[str, Any] = {"data": data, "features": features, "students": students, "time": {"outputs": 3}}
    return problem("phase_diagram:unit", {"rate": rate}, HORIZON / rate, **tables)


def rate_of(exponent: float, dimension: int) -> float:
    """Rate that falls like a power of N."""
    return float((DIMENSIONS[0] / dimension) ** exponent)


def at_rest(width: int, rate: float) -> float:
    """Error of several units near the teacher, in closed form: means are sums with another rate and noise."""
    near = 0.9 * np.eye(width)
    network = erf_networks.Network(near, np.eye(width), np.ones(width), rate / width, 0.0, width * SIGMA)
    return float(erf_networks.errors(network, np.array([0.0, 4000.0 / rate]))[-1] / width**2)


def theory() -> xr.Dataset:
    """Limits at all rates, and closed forms of wide networks at small ones."""
    limits = [error(solved({rate: problem_of(rate)})).isel(case=0).values for rate in RATES]
    wide = [[at_rest(width, rate) for rate in SMALL] for width in WIDTHS]
    ends = {name: ("rate", [each[place] for each in limits]) for name, place in {"start": 0, "last": -1}.items()}
    return xr.Dataset(ends | {"wide": (("width", "small"), wide)}, {"rate": RATES})


def simulate() -> xr.Dataset:
    """SGD at the rate of each N."""
    found = [
        [
            error(simulated({0: problem_of(rate_of(exponent, N))}, N), "sgd_").isel(case=0, time=-1, drop=True)
            for N in DIMENSIONS
        ]
        for exponent in EXPONENTS
    ]
    return xr.Dataset({"sgd_last": (("exponent", "dimension", "replica"), np.array(found))})


def law(rate: Any) -> Any:
    """Error that stays at small rates, a quarter of tau sigma^2 <g'^2>."""
    return rate * SIGMA**2 / (2.0 * np.pi * np.sqrt(3.0))


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The three regimes, and what width does."""
    last = numbers["last"].values
    middle = len(RATES) // 2
    slope = float(np.log(last[0] / last[2]) / np.log(16.0))  # N grows 16-fold while the rate falls 4-fold
    wide = numbers.wide.values / last[: len(SMALL)]
    found = [
        Statement(
            "with delta > 0 the error vanishes as N grows, like N^(-delta)",
            "paper",
            abs(slope + 0.5) < 0.02,
            f"slope {slope:.3f} at delta = 1/2 from rate 1/4 to 1/16",
        ),
        Statement(
            "with delta < 0 nothing is learnt",
            "paper",
            last[-1] > 0.5 * float(numbers.start[-1]),
            f"error {last[middle]:.4f} at rate 1, {last[-2]:.3f} at 8, {last[-1]:.3f} at 16, "
            f"{float(numbers.start[-1]):.3f} at the start",
        ),
        Statement(
            "the error of small rates is gamma sigma^2/(2 pi 3^(1/2) K)",
            "by hand",
            abs(last[0] / law(RATES[0]) - 1.0) < 0.02,
            f"{100 * (last[0] / law(RATES[0]) - 1.0):+.1f} % off at 1/16",
        ),
        Statement(
            "width enters by gamma/K alone (small rates)",
            "paper",
            float(abs(wide[:, 0] - 1.0).max()) < 0.02,
            ", ".join(f"{100 * (each - 1.0):+.1f} % at K = {K}" for each, K in zip(wide[:, 0], WIDTHS, strict=True)),
        ),
    ]
    if "sgd_last" in numbers:
        runs = numbers.sgd_last
        spread = runs.std("replica", ddof=1).values / np.sqrt(runs.sizes["replica"])
        limit = np.array([[float(numbers["last"].sel(rate=rate_of(d, N))) for N in DIMENSIONS] for d in EXPONENTS])
        away = abs(runs.mean("replica").values - limit) / spread
        text = f"off by {away.max():.1f} standard errors at most"
        found.append(Statement("the mean of 16 runs of SGD is the limit", "ours", away.max() < LARGEST_AWAY, text))
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Errors against N, and against rates."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained", sharey=True)
    dimension = DIMENSIONS[0] * 4.0 ** np.arange(5)
    for place, (exponent, label) in enumerate(EXPONENTS.items()):
        limit = [float(numbers["last"].sel(rate=rate_of(exponent, N))) for N in dimension]
        left.plot(dimension, limit, color=COLOURS[place], ls=LINES[place], label=label)
        if "sgd_last" in numbers:
            runs = numbers.sgd_last.isel(exponent=place)
            spread = 2.0 * runs.std("replica", ddof=1) / np.sqrt(runs.sizes["replica"])
            style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "mfc": "white", "ms": 5}
            left.errorbar(DIMENSIONS, runs.mean("replica"), spread, **style)
    left.set(xscale="log", yscale="log", ylim=(2e-4, 3.0), xlabel="N", ylabel="error that stays")
    place_legend(left)
    right.plot(RATES, law(RATES), color="0.6", lw=1.0)
    right.plot(RATES, numbers["last"], marker=MARKERS[0], mfc="white", ls="none", color=COLOURS[0], label="K = 1")
    for place, width in enumerate(WIDTHS, start=1):
        style = {"marker": "x+"[place - 1], "ls": "none", "ms": 7, "color": COLOURS[place]}
        right.plot(SMALL, numbers.wide.isel(width=place - 1), label=f"K = {width}", **style)
    right.set(xscale="log", xlabel=r"rate $\gamma/K$")
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
