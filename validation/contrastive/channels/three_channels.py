"""Three channels, four features: which are learnt, and by how many channels, against the strength of the penalty.

A small model of Barlow Twins: batch centring, the square of the cross-correlations between channels as the penalty, and
one channel fewer than there are features. Three features have heavy tails, three-point with m4 = 5 m2^2 and the second
moments 1.6, 1.5 and 1.4; the fourth is Gaussian with 1.5. sigma(x) = x^2, tau = 0.005, m = 10. SGD is the chain from
random starts at N = 500; from an informed start it is held against the ODE.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.reductions import LEARNT_OVERLAP
from meanfield.plotting import COLOURS, MARKERS
from validation.contrastive.channels.problems import MIXED, end_of, ends_of_chain, labelled, mean_and_error, several
from validation.study import Statement, Study, within_errors

FEATURES = (1.6, 12.8), (1.5, 11.25), (1.4, 9.8), (1.5,)
"""Moments; the last feature is Gaussian."""

NAMES = "heavy tails, $m_2 = 1.6$", "heavy tails, $m_2 = 1.5$", "heavy tails, $m_2 = 1.4$", "Gaussian, $m_2 = 1.5$"

STRENGTHS = 0.0, 0.02, 0.05, 0.1, 0.3
N, REPLICAS, STOP = 500, 10, 400.0

START = np.array([[0.6, 0.3, 0.2], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6], [0.3, 0.2, 0.1]])
"""Informed start of the comparison with the ODE, rows features."""

M_START = np.array([[1.0, 0.4, 0.3], [0.4, 1.0, 0.4], [0.3, 0.4, 1.0]])
COMPARED, T, SGD_N, SGD_REPLICAS = (0.02, 0.1), 12.0, 2000, 24


def trained(strength: float, q: np.ndarray | str, M: np.ndarray | None = None, **settings: float | str) -> Problem:
    return several(FEATURES, q, M, strength=strength, centering="batch", **({"channels": 3} | settings))


def _row(q: np.ndarray, M: np.ndarray) -> np.ndarray:
    """All overlaps in one vector."""
    pairs = np.triu_indices(3, 1)
    return np.concatenate([q.reshape(*q.shape[:-2], -1), M[..., pairs[0], pairs[1]]], axis=-1)


def theory() -> xr.Dataset:
    """The ODE from the informed start."""
    ends = [_row(*end_of(trained(strength, START, M_START, stop=T))) for strength in COMPARED]
    return labelled({"end": (("compared", "overlap"), ends, "overlaps q and M of the limit")}, compared=list(COMPARED))


def simulate() -> xr.Dataset:
    """The chain from random starts, and from the informed one."""
    learnt, different, mixed = np.zeros((3, len(STRENGTHS), len(FEATURES)))
    for i, strength in enumerate(STRENGTHS):
        settings = {"dimension": N, "replicas": REPLICAS, "seed": i, "method": "chain", "stop": STOP}
        q, _ = ends_of_chain(trained(strength, "random", **settings))
        owner = np.where(np.abs(q).max(axis=1) >= LEARNT_OVERLAP, np.abs(q).argmax(axis=1), -1)
        learnt[i] = [(owner == f).any(axis=1).mean() for f in range(len(FEATURES))]
        different[i, 0] = np.mean([len(set(row) - {-1}) for row in owner])
        mixed[i, 0] = np.mean(np.sort(np.abs(q), axis=1)[:, -2] >= 2 * MIXED)
    rows = []
    for strength in COMPARED:
        settings = {"dimension": SGD_N, "replicas": SGD_REPLICAS, "seed": 7, "method": "chain", "stop": T}
        rows.append(mean_and_error(_row(*ends_of_chain(trained(strength, START, M_START, **settings)))))
    mean, error = np.swapaxes(rows, 0, 1)
    dims = ("compared", "overlap")
    return labelled(
        {
            "sgd_learnt": (("strength", "feature"), learnt, "share of runs in which some channel learns the feature"),
            "sgd_different": ("strength", different[:, 0], "mean number of different features"),
            "sgd_mixed": ("strength", mixed[:, 0], "share of channels with a second overlap above twice MIXED"),
            "sgd": (dims, mean, "mean overlaps of SGD"),
            "sgd_error": (dims, error, "their standard error"),
        },
        strength=list(STRENGTHS),
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements on three channels, all of them on SGD."""
    if "sgd" not in numbers:
        return []
    different, learnt = numbers["sgd_different"], numbers["sgd_learnt"]
    away = np.abs(numbers["sgd"] - numbers["end"]) / numbers["sgd_error"]
    kept_apart = [0.05, 0.1]
    counts = ", ".join(f"{float(x):.1f}" for x in different)
    rival, gaussian = (learnt.isel(feature=f) for f in (1, 3))
    at = ", ".join(f"{float(x):.1f}" for x in gaussian)
    against = ", ".join(f"{float(x):.1f}" for x in rival)
    return [
        within_errors(f"SGD at N = {SGD_N} follows the ODE until t = {T:g}", "theory, section 4", away, 4.0),
        Statement(
            "without a penalty channels share features, and under one of 0.05 or 0.1 all learn three different ones",
            "ours",
            bool(different.sel(strength=0.0) < 2.5) and bool((different.sel(strength=kept_apart) == 3).all()),
            f"{counts} features on average, by strength",
        ),
        Statement(
            "the Gaussian feature loses against one with heavy tails and the same second moment, at every strength",
            "ours",
            bool((gaussian < rival).all()),
            f"learnt in shares {at} of the runs against {against}",
        ),
        Statement(
            "it is learnt only where the penalty keeps channels apart",
            "ours",
            bool(gaussian.sel(strength=0.0) == 0) and bool((gaussian.sel(strength=kept_apart) > 0).all()),
            f"shares {at}",
        ),
        Statement(
            "a strong penalty costs features again, and most channels are mixtures",
            "ours",
            bool(different.sel(strength=0.3) < 3) and bool(numbers["sgd_mixed"].sel(strength=0.3) > 0.5),
            f"{float(different.sel(strength=0.3)):.1f} features at 0.3, share of mixtures "
            f"{float(numbers['sgd_mixed'].sel(strength=0.3)):.2f}",
        ),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Features that are learnt, against the strength."""
    figure = Figure(figsize=(6.5, 4.0), layout="constrained")
    axes, places = figure.subplots(), np.arange(len(STRENGTHS))
    for f, (name, colour, marker) in enumerate(zip(NAMES, COLOURS, MARKERS, strict=False)):
        axes.plot(places, numbers["sgd_learnt"].isel(feature=f), f"{marker}-", color=colour, label=name)
    axes.plot(places, numbers["sgd_different"] / 3, "k--", label="different features / 3")
    axes.set_xticks(places, [f"{strength:g}" for strength in STRENGTHS])
    axes.set(xlabel=r"strength of the penalty $\lambda$", ylabel="share of runs that learn the feature")
    figure.legend(loc="outside upper center", ncols=3, fontsize="small")
    return figure


STUDY = Study(theory, judge, draw, simulate, must_hold=True)
