"""Figure 3 and section 5.1 of the paper: one neuron that sees two sites of a ring, on which objects 11 and 101 turn.

A linear neuron learns nothing, and the paper says that a ReLU neuron amplifies the pattern it is selective for. Arrows
are the flow W' = -grad L of the simple loss, by enumeration of both objects and all positions on a ring of 8 sites;
lines are paths from points, by small steps. On the thick line w1 + w2 = 0 (w1 or w2 > 0) paths from both sides meet:
weights stay on it, and grow at half the rate. White regions do not move.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, LINES, MARKERS
from validation.study import Statement, Study

SITES = 8
PATTERNS = {"00": (0, 0), "01": (0, 1), "10": (1, 0), "11": (1, 1)}
STARTS = ((1.0, -2.0), (-0.3, 0.5), (-1.2, 0.4), (1.5, -0.4), (0.6, 1.2), (-1.5, -1.0))
"""Starts of paths."""

STEP, STEPS = 0.05, 3200
"""Step in time, and their number."""

REFERENCE = (1.0, -2.0)
"""Start whose path is known: w1 = e^(t/128) until it reaches the line at t = 128 log 2."""

ANGLES = np.linspace(0.0, 2 * np.pi, 721)[:-1] + 1e-4
"""Directions of weights at which the operator is looked at, beside the directions where a pattern changes."""


def windows() -> np.ndarray:
    """Inputs of the neuron from each object at each position, shape (objects, positions, 2)."""
    rows = np.zeros((2, SITES, SITES))
    for z, gap in enumerate((1, 2)):
        for place in range(SITES):
            rows[z, place, [place, (place + gap) % SITES]] = 1.0
    return rows[:, :, :2]


def operator(x: np.ndarray, w: np.ndarray, relu: bool = True) -> np.ndarray:
    """Covariance operator of the neuron, the variance over objects of the mean connection; shape (..., 2, 2)."""
    gate = (np.einsum("zpi,...i->...zp", x, w) > 0.0) if relu else np.ones((*w.shape[:-1], *x.shape[:2]))
    mean = np.einsum("...zp,zpi->...zi", gate, x) / x.shape[1]
    half = 0.5 * (mean[..., 0, :] - mean[..., 1, :])
    return np.asarray(half[..., :, None] * half[..., None, :])


def velocity(w: np.ndarray) -> np.ndarray:
    """W' = -grad L = 2 OP W, through both branches."""
    return np.asarray(2.0 * (operator(windows(), w) @ w[..., None])[..., 0])


def path(start: tuple[float, float]) -> np.ndarray:
    """Weights by small steps, shape (steps + 1, 2); they average over the two sides of a line where they slide."""
    found, x = [np.array(start)], windows()
    for _ in range(STEPS):
        w = found[-1]
        found.append(w + STEP * 2.0 * operator(x, w) @ w)
    return np.array(found)


def theory() -> xr.Dataset:
    """Operators by direction, and paths."""
    w = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=-1)
    active = np.einsum("pi,ai->ap", np.array(list(PATTERNS.values()), dtype=float), w) > 0.0
    whole = np.eye(SITES)
    ring = np.array([[whole[p] + whole[(p + gap) % SITES] for p in range(SITES)] for gap in (1, 2)])
    linear = ring.mean(axis=1)
    return xr.Dataset(
        {
            "operator": (("angle", "i", "i_"), operator(windows(), w)),
            "linear_operator": (("i", "i_"), operator(windows(), w[0], relu=False)),
            "linear_means": (("object", "site"), linear),
            "active": (("angle", "pattern"), active),
            "path": (("start", "step", "i"), np.array([path(start) for start in STARTS])),
        },
        {"angle": ANGLES, "pattern": list(PATTERNS), "step": STEP * np.arange(STEPS + 1)},
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements on what a neuron learns."""
    size = np.sqrt((numbers.operator**2).sum(["i", "i_"]))
    alone = {
        name: bool((numbers.active.sel(pattern=name) & (numbers.active.sum("pattern") == 1)).any()) for name in PATTERNS
    }
    both = (
        numbers.active.sel(pattern="01") & numbers.active.sel(pattern="11") & ~numbers.active.sel(pattern="10")
    ).values
    w = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=-1)
    outward = velocity(w)[both] @ np.array([1.0, 1.0])
    found = numbers.path.isel(start=STARTS.index(REFERENCE)).values
    meets = STEP * int(np.argmax(found.sum(axis=1) >= 0.0))
    rate = np.log(-found[-1, 1] / 2.0) / (STEP * STEPS - meets)
    flat = float(abs(numbers.linear_means - numbers.linear_means.mean("object")).max())
    return [
        Statement(
            "a linear neuron on the whole ring learns nothing",
            "paper, section 5.1",
            flat == 0.0,
            f"mean connections of the objects differ by {flat:g}",
        ),
        Statement(
            "nor does a linear neuron with a receptive field of two sites",
            "paper, (12)",
            float(abs(numbers.linear_operator).max()) < 1e-15,
            f"largest entry of OP: {float(abs(numbers.linear_operator).max()):.1g}",
        ),
        Statement(
            "a ReLU neuron can learn: OP is not 0",
            "paper, section 5.1",
            float(size.max()) > 0.0,
            f"|OP| = {float(size.max()) * 4 * SITES**2:.4f}/(4 d^2) where one of 01, 10 is active",
        ),
        Statement(
            "it can be selective for any single one of the patterns 00, 01, 10, 11",
            "paper, section 5.1",
            all(alone.values()),
            f"without a bias for {' and '.join(name for name, found in alone.items() if found)} alone",
        ),
        Statement(
            "its selectivity for the active patterns grows, also where there are several, (13)",
            "paper, section 5.1",
            bool((outward > 0.0).all()),
            f"where 01 and 11 are active w.x_11 = w1 + w2 falls for {(outward < 0.0).mean():.0%} of the directions",
        ),
        Statement(
            "weights that start at (1, -2) meet the line w1 + w2 = 0 after 2 d^2 log 2",
            "ours",
            abs(meets - 2 * SITES**2 * np.log(2.0)) < 2 * STEP,
            f"{meets:.2f} by steps of {STEP:g}, {2 * SITES**2 * np.log(2.0):.2f} predicted",
        ),
        Statement(
            "they slide along it, and grow at half the rate, 1/(4 d^2)",
            "ours",
            abs(4 * SITES**2 * rate - 1.0) < 1e-2,
            f"{4 * SITES**2 * rate:.4f}/(4 d^2)",
        ),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Phase portrait."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    grid = np.linspace(-2.9, 2.9, 17)
    w = np.stack(np.meshgrid(grid, grid), axis=-1)
    flow = velocity(w)
    moves = np.linalg.norm(flow, axis=-1) > 0.0
    axes.quiver(w[moves][:, 0], w[moves][:, 1], *flow[moves].T, color="0.55", width=0.003)
    ends = np.array([0.0, 3.0])
    for sign in (1, -1):
        label = "line of sliding" if sign == 1 else None
        axes.plot(sign * ends, -sign * ends, color="0.2", lw=3.5, alpha=0.45, label=label)
    for place, start in enumerate(STARTS):
        style = {"color": COLOURS[place % 6], "ls": LINES[place % 6]}
        axes.plot(*numbers.path.isel(start=place).values.T, lw=1.8, **style)
        axes.plot(*start, MARKERS[place % 7], color=style["color"], ms=7, label=f"from ({start[0]:g}, {start[1]:g})")
    axes.axhline(0.0, color="0.7", lw=0.6)
    axes.axvline(0.0, color="0.7", lw=0.6)
    axes.text(1.9, 2.3, "all active:\nOP = 0", ha="center")
    axes.text(-2.2, -2.5, "dead", ha="center")
    axes.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xlabel="$w_1$", ylabel="$w_2$")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


STUDY = Study(theory, judge, draw)
