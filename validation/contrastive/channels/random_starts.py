"""Random starts at rising N: whether channels collapse, tilt, or learn different features is chance, and chance fades.

The features are three-point with (m2, m4) = (2, 20) and (1.7, 14.45), sigma(x) = x^2, the square penalty, population
centring, tau = 0.004, m = 5. SGD is the chain, from weights that are uniform on the sphere, until t = 450, and 600 at
N = 10^5. Beside it stands what the limit says of N: near q = 0 overlaps grow as sqrt(N) q_fk = exp(j_f t) Y_fk with
Gaussian Y, of variance 1 + S_f/(2 j_f), independent over channels; from such starts the ODE decides. There N may be as
large as one likes.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.thresholds import uninformed_rates
from meanfield.families.contrastive.problem import Problem
from meanfield.plotting import COLOURS, MARKERS
from validation.contrastive.channels.problems import end_of, ends_of_chain, kind_of, labelled, several
from validation.study import Statement, Study

FEATURES = (2.0, 20.0), (1.7, 14.45)
STRENGTHS = 0.0, 0.012, 0.03
"""Below the strength at which collapsed channels part, where they tilt, and above."""

OUTCOMES = "collapsed", "tilted", "distinct"
RUNS = {100: 60, 300: 60, 1000: 20, 10_000: 6, 100_000: 3}
"""Number of replicas of SGD by N."""

DIMENSIONS = 10**3, 10**4, 10**6
STARTS = 20
"""Number of random amplitudes of the limit for each N."""

STOPS = {100: 450.0, 300: 450.0, 1000: 450.0, 10_000: 450.0, 100_000: 600.0}
ODE_STOP = 1500.0
"""Times of SGD, by N, and of the ODE, which begins at small overlaps of any N; longer than to rest."""

REFERENCE = {0.0: (56, 0, 23), 0.012: (0, 16, 34), 0.03: (0, 0, 74)}
"""Outcomes at N = 300 of another program, by strength."""

CHANCE = 0.01
"""Chance of a false alarm of each comparison of counts."""


def trained(strength: float, q: np.ndarray | str, M: float | None = None, **settings: float) -> Problem:
    return several(FEATURES, q, M, strength=strength, tau=0.004, m=5, **({"channels": 2, "stop": ODE_STOP} | settings))


def counts(kinds: list[str]) -> list[int]:
    """Numbers of `OUTCOMES`; distinct and rotated channels have different features."""
    return [kinds.count(outcome) + (outcome == "distinct") * kinds.count("rotated") for outcome in OUTCOMES]


def amplitudes(strength: float, rng: np.random.Generator) -> np.ndarray:
    """Y, shape (STARTS, d1, d2), by the growth rates at q = 0 and the covariance of a step there."""
    problem = trained(strength, np.zeros((2, 2)), 0.0)
    j = uninformed_rates(problem)[:, 0]
    # At q = 0 the covariance of q of a step is that of the drift along features, second moment m2 of c, and Lambda.
    noise = ChannelClosure(problem)(np.zeros((2, 2)), np.eye(2))[2][0, 0]
    spread = np.array([moments[0] for moments in FEATURES]) * noise
    return np.sqrt(1 + spread / (2 * j))[:, None] * rng.standard_normal((STARTS, 2, 2))


def theory() -> xr.Dataset:
    """Outcomes of the ODE from random amplitudes."""
    found = np.zeros((len(STRENGTHS), len(DIMENSIONS), len(OUTCOMES)), np.int64)
    for i, strength in enumerate(STRENGTHS):
        Y = amplitudes(strength, np.random.default_rng(i))
        for k, N in enumerate(DIMENSIONS):
            ends = [end_of(trained(strength, y / np.sqrt(N), 0.0)) for y in Y]
            found[i, k] = counts([kind_of(*end) for end in ends])
    threshold = meanfield.contrastive.collapse_threshold(trained(0.0, np.zeros((2, 2)), 0.0))
    return labelled(
        {
            "count": (("strength", "dimension", "outcome"), found, "outcomes of the limit from random amplitudes"),
            "threshold": ((), threshold, "strength at which channels on the first feature part"),
        },
        strength=list(STRENGTHS),
        dimension=list(DIMENSIONS),
        outcome=list(OUTCOMES),
    )


def simulate() -> xr.Dataset:
    """Outcomes of SGD."""
    found = np.zeros((len(STRENGTHS), len(RUNS), len(OUTCOMES)), np.int64)
    for i, strength in enumerate(STRENGTHS):
        for k, (N, replicas) in enumerate(RUNS.items()):
            settings = {"stop": STOPS[N], "dimension": N, "replicas": replicas, "seed": 10 * i + k, "method": "chain"}
            q, M = ends_of_chain(trained(strength, "random", **settings))
            found[i, k] = counts([kind_of(*end) for end in zip(q, M, strict=True)])
    return labelled(
        {"sgd_count": (("strength", "sgd_dimension", "outcome"), found, "outcomes of SGD")}, sgd_dimension=list(RUNS)
    )


def chance_of(first: np.ndarray, second: np.ndarray) -> float:
    """Chance of counts as different as these from one law, by permutations of what was counted (seed 0)."""

    def statistic(a: np.ndarray, b: np.ndarray) -> float:
        expected = (a + b) / (a + b).sum()
        kept = expected > 0
        parts = [((n - n.sum() * expected)[kept] ** 2 / (n.sum() * expected[kept])).sum() for n in (a, b)]
        return float(sum(parts))

    rng, given = np.random.default_rng(0), statistic(first, second)
    drawn = rng.multivariate_hypergeometric(first + second, int(first.sum()), size=4000)
    return float(np.mean([statistic(a, first + second - a) >= given - 1e-9 for a in drawn]))


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements on random starts."""
    found, ours = [], "theory, section 6"
    share = numbers["count"] / numbers["count"].sum("outcome")
    without = share.sel(strength=0.0, outcome="collapsed")
    values = ", ".join(f"{float(x):.2f}" for x in without)
    found.append(
        Statement(
            "without a penalty both channels learn the same feature ever more often as N grows",
            ours,
            without[-1] > without[0],
            f"shares {values} from N = {DIMENSIONS[0]} to {DIMENSIONS[-1]}, in the limit",
        )
    )
    tilted = share.sel(strength=0.012, outcome="tilted")
    values = ", ".join(f"{float(x):.2f}" for x in tilted)
    found.append(
        Statement(
            "just above lambda_c they tilt instead, ever more often", ours, tilted[-1] > tilted[0], f"shares {values}"
        )
    )
    high = share.sel(strength=0.03, outcome="distinct")
    found.append(
        Statement(
            "well above it they learn different features at every N",
            ours,
            (high == 1).all(),
            f"{float(high.min()):.2f} at least",
        )
    )
    if "sgd_count" not in numbers:
        return found
    sgd = numbers["sgd_count"]
    for N in sorted(set(RUNS) & set(DIMENSIONS)):
        chances = [
            chance_of(sgd.sel(strength=s, sgd_dimension=N).values, numbers["count"].sel(strength=s, dimension=N).values)
            for s in STRENGTHS
        ]
        text = f"at N = {N} SGD has the outcomes that the limit predicts"
        number = f"chances {', '.join(f'{chance:.2f}' for chance in chances)}"
        found.append(Statement(text, ours, min(chances) > CHANCE, number))
    chances, told = [], []
    for strength, other in REFERENCE.items():
        own = sgd.sel(strength=strength, sgd_dimension=300).values
        chances.append(chance_of(own, np.array(other)))
        told.append("/".join(map(str, own)))
    number = f"{', '.join(told)} of {RUNS[300]}; chances {', '.join(f'{chance:.2f}' for chance in chances)}"
    found.append(
        Statement("at N = 300 the outcomes are those of another program", "ours", min(chances) > CHANCE, number)
    )
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Shares against N, a panel for each strength."""
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    for axes, strength in zip(figure.subplots(1, len(STRENGTHS), sharey=True), STRENGTHS, strict=True):
        for outcome, colour, marker in zip(OUTCOMES, COLOURS, MARKERS, strict=False):
            own = numbers["count"].sel(strength=strength)
            axes.plot(DIMENSIONS, own.sel(outcome=outcome) / own.sum("outcome"), "--", color=colour)
            sgd = numbers["sgd_count"].sel(strength=strength)
            total = sgd.sum("outcome")
            share = sgd.sel(outcome=outcome) / total
            error = np.sqrt(share * (1 - share) / total)
            axes.errorbar(list(RUNS), share, error, fmt=f"{marker}-", color=colour, markersize=5, label=outcome)
        axes.set(xscale="log", xlabel="$N$", title=rf"$\lambda = {strength:g}$")
    figure.axes[0].set_ylabel("share of runs")
    figure.axes[-1].plot([], [], "k--", label="limit")
    figure.axes[-1].legend(fontsize="small", loc="center")
    return figure


STUDY = Study(theory, judge, draw, simulate, must_hold=True)
