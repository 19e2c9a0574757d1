"""Sparse principal components: l1 against plain Oja, whose weights are held against a threshold.

Samples are noise with a signal of variance omega = 0.5 along a feature of which one coordinate in twenty is not 0; a
step adds tau s x, tau = 0.5, takes lambda sign(w) off every weight, and goes back to the sphere. Numbers are of t = 60.
Left, the overlap q against the strength lambda; the dotted line is plain Oja's in closed form. Right, true against
false positive rate at all thresholds of |w|. Four runs of SGD have N = 20,000 and end at t = 2.
"""

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import place_legend
from validation.study import Statement, Study
from validation.update_rule.sparse.cases import agreement, draw_rates, problem, simulated, solved

OMEGA, RATE, STRENGTHS = 0.5, 0.5, (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
PLAIN = ((2.0 * OMEGA - RATE) / (OMEGA * (2.0 + RATE))) ** 0.5


def problem_of(strength: float, stop: float = 60.0) -> object:
    """Oja's rule on the sphere."""
    hidden, coordinate = {"law": "gaussian", "second_moment": OMEGA}, {"law": "three_point", "fourth_moment": 20.0}
    features = [{"initial_overlap": 0.3, "hidden": hidden, "coordinate": coordinate}]
    sphere = {"model": {"constraint": "sphere"}, "data": {"signal": "spiked"}, "features": features}
    return problem("oja", RATE, {"name": "l1", "strength": strength}, stop, 2, **sphere)


def theory() -> xr.Dataset:
    """Densities at all strengths."""
    return solved(problem_of, strength=STRENGTHS).isel(time=-1)


def simulate() -> xr.Dataset:
    """SGD at one strength."""
    return simulated(problem_of(0.3, 2.0), 20_000, [2.0])


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Overlap and recovery under l1 against plain Oja."""
    q, found = numbers["R"].values, numbers["youden"].values
    best = STRENGTHS[q.argmax()]
    return [
        Statement(
            "without a prior the overlap is the closed form",
            "by hand",
            abs(q[0] - PLAIN) < 1e-4,
            f"off by {abs(q[0] - PLAIN):.0e}",
        ),
        Statement(
            "l1 raises the overlap above plain Oja",
            "ours",
            q.max() > PLAIN,
            f"{q.max():.3f} at {best:g}, {PLAIN:.3f} without",
        ),
        Statement(
            "and recovers more of the support than thresholds of plain Oja",
            "ours",
            found.max() > found[0],
            f"true less false positive rate {found.max():.3f} and {found[0]:.3f}",
        ),
        *agreement(numbers),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Overlaps, and rates at all thresholds."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    left.plot(numbers["strength"], numbers["R"], "o-", mfc="white")
    left.axhline(PLAIN, color="0.3", ls=":", label="plain Oja")
    left.set(xlabel=r"strength $\lambda$", ylabel="overlap q")
    draw_rates(right, numbers, (0.0, 0.1, 0.3, 0.5))
    place_legend(left), place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
