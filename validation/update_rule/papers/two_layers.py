"""Two-layer students that are too wide, as in Goldt et al. (2019): more units, more noise, or less.

S. Goldt, M. S. Advani, A. M. Saxe, F. Krzakala and L. Zdeborova, *Dynamics of stochastic gradient descent for
two-layer neural networks in the teacher-student setup*, Advances in Neural Information Processing Systems 32 (2019).
One teacher unit answers with label noise, and K students learn with heads of 1. Left, linear units: the error that
stays is eta sigma^2 K/(4 - 2 eta K) (dotted), so that every unit adds noise. Right, errors of units erf(s/sqrt 2) early
(t = 400, open marks, dashed) and late (t = 30000): with heads that are trained each further unit is better in the end,
and not before. With heads of 1 more units than the teacher has are worse again, but of three two grow without bound
and cancel, g being odd, so that the error falls slowly, and at no time that is drawn is at rest, to that of one. Lines
join closed forms; crosses are limits by quadrature, in K + 1 dimensions, and bars SGD at N = 500 with two standard
errors.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import erf

import meanfield
from meanfield.plotting import COLOURS, MARKERS, place_legend
from validation.study import Statement, Study, within_errors
from validation.update_rule.papers import erf_networks
from validation.update_rule.papers.cases import (
    LARGEST_AWAY,
    address,
    agreement,
    draw_cases,
    error,
    problem,
    simulated,
    solved,
)

RATE, SIGMA, STOP = 0.1, 0.5, 60.0
WIDTHS = (1, 2, 4, 8)

ERF_RATE, HEAD_RATE, ERF_SIGMA, EARLY, LATE = 0.5, 0.25, 0.2, 400.0, 30000.0
LATER = 10.0 ** np.arange(4, 7)
ERF_WIDTHS = (1, 2, 3, 4)
STARTS = (0.3, 0.1, -0.1, 0.2)
HEADS = (0.9, 0.6, -0.4, 0.5)
KINDS = {"soft": "heads of 1", "both": "heads trained"}


def linear_step(y: Any, s: Any, eps: Any, rate: float) -> Any:
    """Gradient of the squared error, the same for all units."""
    return rate * (y + SIGMA * eps - np.sum(s)) * np.ones_like(s)


def linear_error(y: Any, s: Any) -> Any:
    """Error on labels without noise."""
    return 0.5 * (y - np.sum(s)) ** 2


def g(x: Any) -> Any:
    """Activation."""
    return erf(x / np.sqrt(2))


def slope(x: Any) -> Any:
    """Derivative of the activation."""
    return np.sqrt(2 / np.pi) * np.exp(-x * x / 2)


def erf_step(y: Any, s: Any, first: float, second: float, up: Any) -> Any:
    """Step of two erf units; label noise of +-sigma has the limit of Gaussian noise."""
    miss = g(y) + ERF_SIGMA * (2 * up - 1) - first * g(s[0]) - second * g(s[1])
    return ERF_RATE * miss * np.array([first * slope(s[0]), second * slope(s[1])])


def first_step(y: Any, s: Any, first: float, second: float, head_rate: float) -> Any:
    """Step of the first head; noise of zero mean drops out."""
    return head_rate * g(s[0]) * (g(y) - first * g(s[0]) - second * g(s[1]))


def second_step(y: Any, s: Any, first: float, second: float, head_rate: float) -> Any:
    """Step of the second head."""
    return head_rate * g(s[1]) * (g(y) - first * g(s[0]) - second * g(s[1]))


def erf_error(y: Any, s: Any, first: float, second: float) -> Any:
    """Error on labels without noise."""
    return 0.5 * (g(y) - first * g(s[0]) - second * g(s[1])) ** 2


linear = meanfield.Rule(linear_step, observables={"error": linear_error})
erf_units = meanfield.Rule(erf_step, observables={"error": erf_error})


def problem_of(width: int) -> object:
    """Linear units of a width."""
    students, features = [{"initial_norm": 0.1}] * width, [{"initial_overlap": 0.0}]
    tables: dict[str, Any] = {"data": {"normals": ["eps"]}, "features": features, "students": students}
    return problem("two_layers:linear", {"rate": RATE}, STOP, **tables)


def network_of(kind: str, width: int) -> erf_networks.Network:
    """Erf units of a width."""
    heads = np.ones(width) if kind == "soft" else np.array(HEADS[:width])
    head_rate = 0.0 if kind == "soft" else HEAD_RATE
    R, Q = np.array(STARTS[:width])[:, None], 0.25 * np.eye(width)
    return erf_networks.Network(R, Q, heads, ERF_RATE, head_rate, ERF_SIGMA)


def erf_problem(kind: str) -> object:
    """Two erf units as a rule, from the same start."""
    network = network_of(kind, 2)
    side = {
        name: {"start": head, "step": address(f"two_layers:{name}_step")}
        for name, head in zip(("first", "second"), network.v.tolist(), strict=True)
    }
    return problem(
        "two_layers:erf_units",
        {"head_rate": network.head_rate},
        EARLY,
        data={"coins": {"up": 0.5}},
        features=[{"initial_overlap": network.R[:, 0].tolist()}],
        students=[{"initial_norm": 0.25}] * 2,
        side=side,
        order_parameters={"tolerance": 1e-5},
        time={"outputs": 5},
    )


def erf_problems() -> dict[str, object]:
    """Both kinds of two erf units."""
    return {kind: erf_problem(kind) for kind in KINDS}


def at_early(numbers: xr.Dataset, prefix: str = "") -> xr.DataArray:
    """Errors of erf units at the end of their runs."""
    return error(numbers, prefix).isel(time=-1, drop=True).rename(case="kind")


def theory() -> xr.Dataset:
    """Limits of linear units, and errors of erf units in closed form and as limits."""
    times = np.array([0.0, EARLY, LATE])
    closed = [[erf_networks.errors(network_of(kind, width), times)[1:] for width in ERF_WIDTHS] for kind in KINDS]
    places = {"kind": list(KINDS), "erf_width": list(ERF_WIDTHS), "erf_time": times[1:]}
    pair = erf_networks.errors(network_of("soft", 3), np.append(0.0, LATER))[1:]
    return solved({width: problem_of(width) for width in WIDTHS}).assign(
        erf_closed=xr.DataArray(closed, places, tuple(places)),
        erf_limit=at_early(solved(erf_problems())),
        pair=("later", pair),
    )


def simulate() -> xr.Dataset:
    """SGD of linear units, and of two erf units."""
    erf_runs = at_early(simulated(erf_problems()), "sgd_")
    return simulated({width: problem_of(width) for width in WIDTHS}).assign(sgd_erf=erf_runs)


def final(width: int) -> float:
    """Error of linear units that stays."""
    return RATE * SIGMA**2 * width / (4.0 - 2.0 * RATE * width)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Errors against widths."""
    last = error(numbers).isel(time=-1)
    off = max(abs(float(last.sel(case=width)) - final(width)) for width in WIDTHS)
    agree = float(abs(numbers.erf_limit - numbers.erf_closed.sel(erf_width=2, erf_time=EARLY)).max())
    early, (soft, both) = (numbers.erf_closed.sel(erf_time=time).values for time in (EARLY, LATE))
    excess = numbers.pair.values - soft[0]
    found = [
        Statement(
            "linear units keep the error eta sigma^2 K/(4 - 2 eta K)", "by hand", off < 1e-5, f"off by {off:.0e}"
        ),
        Statement("errors of two erf units are the closed form", "by hand", agree < 1e-5, f"off by {agree:.0e}"),
        Statement(
            "erf units with heads of 1: more units than the teacher has raise the error (late)",
            "paper",
            soft[1:].min() > soft[0],
            f"{said(soft)} for K = 1 to {len(soft)}, of which K = 3 and 4 are not at rest",
        ),
        Statement(
            "of three two cancel ever better, so that the error falls to that of one, like t^(-1/3)",
            "ours",
            bool(np.all(abs(np.diff(np.log10(excess)) + 1.0 / 3.0) < 0.04)),
            f"it is larger by {said(excess)} at t = 10^4, 10^5, 10^6",
        ),
        Statement(
            "with heads that are trained each further unit lowers it (late)",
            "paper",
            bool(np.all(np.diff(both) < 0)),
            f"{said(both)}; early it does not, {said(early[1])}",
        ),
        *agreement(numbers, error),
    ]
    if "sgd_erf" in numbers:
        spread = numbers.sgd_erf.std("replica", ddof=1) / np.sqrt(numbers.sizes["replica"])
        away = abs(numbers.sgd_erf.mean("replica") - numbers.erf_limit) / spread
        found.append(within_errors("so it is of two erf units", "ours", away.max(), LARGEST_AWAY))
    return found


def said(errors: np.ndarray) -> str:
    """Numbers of a statement."""
    return ", ".join(f"{value:.5f}" for value in errors)


def draw(numbers: xr.Dataset) -> Figure:
    """Errors in time, and against widths."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    draw_cases(left, numbers, error, {width: f"K = {width}" for width in WIDTHS})
    for width in WIDTHS:
        left.axhline(final(width), color="0.6", lw=0.8, ls=":", zorder=0)
    left.set(yscale="log", xlabel="time t = k/N", ylabel="error, linear units")
    place_legend(left)
    for place, (kind, label) in enumerate(KINDS.items()):
        style = {"color": COLOURS[place], "marker": MARKERS[place]}
        errors = numbers.erf_closed.sel(kind=kind)
        right.plot(ERF_WIDTHS, errors.sel(erf_time=LATE), lw=1.2, label=f"{label}, late", **style)
        right.plot(ERF_WIDTHS, errors.sel(erf_time=EARLY), lw=1.0, ls="--", mfc="white", label="early", **style)
        right.plot(2, numbers.erf_limit.sel(kind=kind), "x", color="0.2", ms=8, zorder=5)
        if "sgd_erf" in numbers:
            runs = numbers.sgd_erf.sel(kind=kind)
            spread = 2.0 * runs.std("replica", ddof=1) / np.sqrt(runs.sizes["replica"])
            right.errorbar(2.06, runs.mean("replica"), spread, color="0.2", marker="_", ms=5, lw=1.0)
    right.set(yscale="log", xticks=ERF_WIDTHS, xlabel="number K of units", ylabel="error, erf units")
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
