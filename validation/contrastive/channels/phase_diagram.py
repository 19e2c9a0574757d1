"""Phase diagram of two channels by strength of the penalty and batch size: collapse, a feature each, mixtures.

Both features are three-point with m2 = 1.1 and m4 = 6.05; sigma(x) = x^2, the square penalty, population centring,
tau = 0.005. At each point the ODE runs to t = 4000 from the same random starts of order 1. Lines are the strength at
which collapsed channels part and that at which a feature each turns into mixtures: zeros of growth rates, and their
closed forms as tau -> 0.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.families.contrastive.problem import Problem
from meanfield.plotting import COLOURS
from validation.contrastive.channels.problems import (
    HEAVY,
    KINDS,
    end_of,
    kind_of,
    labelled,
    random_overlaps,
    several,
    shares,
)
from validation.study import Statement, Study

SIZES = (3, 5, 10, 20, 50)
"""Batch sizes."""

STRENGTHS = tuple(float(x) for x in np.round(np.geomspace(0.004, 0.9, 15), 4))

TAU, STARTS = 0.005, 8
REST_TIME = 4000.0
THEORY = "theory, section 6"

TILT_SEEN = 1.05
"""Ratio to the first threshold up to which pairs are tilted so little that they are called collapsed."""

TILTED = 2.5
"""Ratio up to which some starts lead to tilted pairs."""

CORRECTION = 40.0
"""Largest relative difference of the second threshold and its closed form, in units of tau/m."""

HATCHES = "", "..", "//", "xx", "\\\\", "--"
"""Patterns of the kinds of states, so that colours alone do not tell them apart."""


def at(strength: float, m: int, start: int = 0) -> Problem:
    """Problem at a point of the plane, from one of the random starts."""
    q, M = random_overlaps(np.random.default_rng(start), 2, 2)
    return several([HEAVY, HEAVY], q, M, strength=strength, m=m, tau=TAU, stop=REST_TIME)


def mixing_closed_form(m: int) -> float:
    """Strength at which a feature each turns into mixtures, as tau -> 0 (theory, section 6)."""
    m2, m4 = HEAVY
    m6 = m4**2 / m2
    V4 = m4 - m2**2
    return 2 * m * (m4 - 3 * m2**2) / (20 * V4**2 - 8 * m2 * (m6 - 2 * m2 * m4 + m2**3))


def theory() -> xr.Dataset:
    """Shares of what is learnt, and the thresholds."""
    found = [
        [shares([kind_of(*end_of(at(strength, m, start))) for start in range(STARTS)]) for strength in STRENGTHS]
        for m in SIZES
    ]
    return labelled(
        {
            "share": (("m", "strength", "kind"), found, "share of the random starts"),
            "collapse": (
                "m",
                [meanfield.contrastive.collapse_threshold(at(0.0, m)) for m in SIZES],
                "where collapsed channels part",
            ),
            "mixing": ("m", [meanfield.contrastive.mixing_threshold(at(0.0, m)) for m in SIZES], "where features mix"),
            "mixing_closed_form": ("m", [mixing_closed_form(m) for m in SIZES], "where features mix as tau -> 0"),
        },
        m=list(SIZES),
        strength=list(STRENGTHS),
        kind=list(KINDS),
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements on the regions between the thresholds."""
    share, strength = numbers["share"], numbers["strength"]
    ratio = strength / numbers["collapse"]
    below, above = ratio < 1, strength > numbers["mixing"]
    between = ~below & ~above
    tilted, collapsed = share.sel(kind="tilted"), share.sel(kind="collapsed")
    single, rotated = share.sel(kind="distinct"), share.sel(kind="rotated")
    parted, window = ratio > TILT_SEEN, between & (ratio > TILTED)
    off = (numbers["mixing"] / numbers["mixing_closed_form"] - 1) / (TAU / numbers["m"])
    return [
        Statement(
            f"channels collapse from some starts below the first threshold, and from none above {TILT_SEEN} times it",
            THEORY,
            bool(
                ((collapsed > 0).where(below).max("strength") > 0).all() and (collapsed.where(parted, 0.0) == 0).all()
            ),
            f"{_percent(collapsed, below)} below, {_percent(collapsed, parted)} above that",
        ),
        Statement(
            f"tilted pairs are seen only between the thresholds, up to {TILTED} times the first",
            THEORY,
            bool((tilted.where(~between | window, 0.0) == 0).all()),
            f"{_percent(tilted, between)} between",
        ),
        Statement(
            f"from {TILTED} times the first threshold to the second each channel learns a single feature of its own",
            THEORY,
            bool((single.where(window, 1.0) == 1).all()),
            f"{_percent(single, window)} of the starts",
        ),
        Statement(
            "above the second threshold no channel rests on a single feature while the other has one of its own",
            THEORY,
            bool((single.where(above, 0.0) == 0).all()),
            f"{_percent(rotated, above)} rotated, {_percent(share.sel(kind='one channel'), above)} one channel only, "
            f"{_percent(share.sel(kind='nothing'), above)} nothing",
        ),
        Statement(
            f"the second threshold grows with m as the closed form for tau -> 0 says, up to {CORRECTION:g} tau/m of it",
            THEORY,
            bool((np.abs(off) < CORRECTION).all()),
            f"above it by {float(off.min()):.1f} to {float(off.max()):.1f} tau/m",
        ),
    ]


def _percent(share: xr.DataArray, where: xr.DataArray) -> str:
    return f"{100 * float(share.where(where).mean()):.0f} %"


def draw(numbers: xr.Dataset) -> Figure:
    """A bar of shares at each point, and the thresholds."""
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.subplots()
    places = np.arange(numbers.sizes["strength"])
    for row in range(numbers.sizes["m"]):
        left = places - 0.45
        for kind, colour, hatch in zip(KINDS, COLOURS, HATCHES, strict=False):
            width = 0.9 * numbers["share"].values[row, :, KINDS.index(kind)]
            style = {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.0}
            axes.barh(np.full(len(places), row), width, 0.75, left=left, **style, label=kind if row == 0 else None)
            left = left + width
    for name, style, label in (("collapse", "-", "collapsed channels part"), ("mixing", "--", "features mix")):
        place = np.interp(np.log(numbers[name]), np.log(numbers["strength"]), places)
        axes.plot(place, np.arange(len(place)), style, color="k", marker="o", markersize=4, label=label)
    axes.set_xticks(places[::2], [f"{x:.3g}" for x in numbers["strength"].values[::2]])
    axes.set_yticks(np.arange(numbers.sizes["m"]), [str(m) for m in numbers["m"].values])
    axes.set(xlabel=r"strength of the penalty $\lambda$", ylabel="batch size $m$")
    figure.legend(loc="outside upper center", ncols=4, fontsize="small")
    return figure


STUDY = Study(theory, judge, draw, must_hold=True)
