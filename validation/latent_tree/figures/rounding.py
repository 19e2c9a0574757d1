"""Rounding: what the public code's score gives a constant pre-activation, and whether the order of sums matters.

A constant has no correlation with anything. The public code adds up values and squares in single precision, batch by
batch, and a variance below 0 becomes 0: if a covariance of rounding is left, the score is 1. This is done for constants
of all sizes with fair and independent latents. On the left, the chance of a score above one half by the size of the
constant, for sums over a batch in three orders: eight at a time, as NumPy, in pairs of pairs, as on graphics cards, and
one by one. On the right, how many scores another order, other samples or another last digit of the constant turn from 0
to 1 or back. Bars are standard errors.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, LINES, MARKERS
from validation.hidden_manifold.figures.discrepancy import written
from validation.latent_tree.figures.single_precision import SAMPLES, FloatArray, correlations, in_blocks
from validation.study import Statement, Study

SIZES = np.geomspace(0.05, 2.0, 9)
"""Limits of the sizes of constants."""

COUNT = 150
"""Constants between two limits."""

DRAWS = 2
"""Draws of the samples."""


def in_pairs(batches: FloatArray) -> FloatArray:
    """Sums along the last dim, of 2^k numbers, by halves."""
    while batches.shape[-1] > 1:
        half = batches.shape[-1] // 2
        batches = batches[..., :half] + batches[..., half:]
    return batches[..., 0]


def one_by_one(batches: FloatArray) -> FloatArray:
    """Sums along the last dim from its first number on."""
    return np.asarray(np.cumsum(batches, axis=-1, dtype=np.float32)[..., -1])


ORDERS = {"eight at a time": in_blocks, "pairs": in_pairs, "one by one": one_by_one}

LAST_DIGIT = "another last digit"
"""The next number in single precision instead of a constant."""


def theory() -> xr.Dataset:
    """Whether scores of constants are above one half, by order of sums and draw of samples."""
    rng = np.random.default_rng(0)
    constant = rng.uniform(SIZES[:-1, None], SIZES[1:, None], (len(SIZES) - 1, COUNT)).astype(np.float32)
    above = np.nextafter(constant, np.float32(np.inf))
    cases = {**{order: (constant, add) for order, add in ORDERS.items()}, LAST_DIGIT: (above, in_blocks)}
    found = np.empty((len(cases), DRAWS, *constant.shape), bool)
    for draw in range(DRAWS):
        z = rng.integers(2, size=SAMPLES).astype(np.float32)
        for place, (values, add) in enumerate(cases.values()):
            for size, some in enumerate(values):
                f = np.repeat(some[:, None], SAMPLES, axis=1)
                found[place, draw, size] = correlations(z, f, add) > 0.5
    middle = np.sqrt(SIZES[:-1] * SIZES[1:])
    return xr.Dataset({"high": (("case", "draw", "size", "one"), found)}, {"case": list(cases), "size": middle})


def changes(high: xr.DataArray) -> dict[str, xr.DataArray]:
    """Changes of scores, 0, 1 or -1, by another order than that of NumPy, samples and last digits."""
    score = high.astype(int)
    first, *others = ORDERS
    own = score.sel(case=first)
    orders = {f"{order} instead of {first}": score.sel(case=order) - own for order in others}
    return orders | {"with other samples": own.diff("draw"), f"with {LAST_DIGIT}": score.sel(case=LAST_DIGIT) - own}


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether the chance of a high score depends on what rounds otherwise, and how large it is."""
    found = []
    for name, change in changes(numbers.high).items():
        each = change.mean("draw").values.ravel()  # draws of one constant are not independent
        mean, error = float(each.mean()), float(each.std(ddof=1) / np.sqrt(each.size))
        found.append(
            Statement(
                f"{name}: constants have the same chance of a score of 1",
                "ours",
                abs(mean) <= 3.0 * error,
                f"changes by {written(mean, error)}; {float(abs(change).mean()):.1%} of the scores are others",
            )
        )
    chance = numbers.high.sel(case=list(ORDERS)).mean(("draw", "one"))
    low, high = (f"{float(chance.isel(size=place).mean()):.2f}" for place in (0, -1))
    ends = [f"{edge:.2g}" for edge in (SIZES[0], SIZES[1], SIZES[-2], SIZES[-1])]
    text = (
        f"{low} of those in [{ends[0]}, {ends[1]}], {high} in [{ends[2]}, {ends[3]}], {float(chance.max()):.2f} at most"
    )
    found.append(Statement("a constant scores 0 more often than 1", "ours", bool((chance < 0.5).all()), text))
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Chances by size, and changes by order and samples."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.4), layout="constrained")
    each = numbers.high.mean("draw")
    for place, order in enumerate(ORDERS):
        style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": LINES[place], "ms": 5, "capsize": 2}
        _with_errors(left, each.sel(case=order), order, (place - 1) * 0.03, style)
    left.set(ylabel="chance of a score of 1")
    for place, (name, change) in enumerate(changes(numbers.high).items()):
        style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": LINES[place], "ms": 5, "capsize": 2}
        _with_errors(right, abs(change).mean("draw"), name, (place - 1) * 0.03, style)
    right.set(ylabel="share of scores that change")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="size of the constant", ylim=(-0.01 * axes.get_ylim()[1], None))
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    return figure


def _with_errors(axes: Axes, each: xr.DataArray, label: str, shift: float, style: dict[str, Any]) -> None:
    """Means over constants with their standard errors, a little aside."""
    error = each.std("one", ddof=1) / np.sqrt(each.sizes["one"])
    axes.errorbar(each["size"] * (1.0 + shift), each.mean("one"), error, label=label, **style)


STUDY = Study(theory, judge, draw)
