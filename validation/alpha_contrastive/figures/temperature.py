"""Number of local maxima of a filter against the temperature of its importance.

The paper says that a non-uniform importance creates more optima than the uniform one, since it makes A(w) less rough,
with the importance held fixed (corollary 2). Here all maxima are enumerated, for the nine points of figure 8 and for
five points, with the Gaussian and the InfoNCE importance. There are many more of them at small temperatures, and just
as many as under the uniform importance at large ones. With the importance held fixed, as in the paper's proofs and for
one filter among infinitely many, hardly any is added, and at small temperatures none is left: what makes maxima of the
new points is that the importance answers to the filter.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.plotting import COLOURS, MARKERS
from validation.alpha_contrastive.figures.one_layer import FIVE, NINE, Array, Law, angles_of, apart, make_problem
from validation.study import Statement, Study

CASES: dict[str, tuple[str, Law, str]] = {
    "nine points, ReLU, Gaussian": ("relu", NINE, "gaussian"),
    "nine points, ReLU, InfoNCE": ("relu", NINE, "infonce"),
    "five points, ReLU, Gaussian": ("relu", FIVE, "gaussian"),
    "five points, $x^2$, Gaussian": ("quadratic", FIVE, "gaussian"),
}
TEMPERATURES = 100.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01
SCAN = 20_000
"""Angles of the scan that enumeration is held against."""


def objective(activation: str, law: Law, kind: str, tau: float, theta: Array) -> Array:
    """G of one filter by its definition: for InfoNCE without pairs of a point with itself."""
    z = np.cos(theta)[:, None] * law.points[:, 0] + np.sin(theta)[:, None] * law.points[:, 1]
    h = np.maximum(z, 0.0) if activation == "relu" else z * z
    D, p = 0.5 * (h[:, :, None] - h[:, None, :]) ** 2, law.probabilities
    if kind == "gaussian":
        return np.asarray(-0.5 * tau * np.einsum("i,j,tij->t", p, p, np.expm1(-D / tau)))
    others = ~np.eye(len(p), dtype=bool) * p / (1.0 - p)[:, None]
    least = np.where(others > 0.0, D, np.inf).min(axis=2)
    mean = np.sum(others * np.exp(-(D - least[:, :, None]) / tau * (others > 0.0)), axis=2)
    return np.asarray(-0.5 * tau * ((np.log(mean) - least / tau) @ p))


def maxima_of_scan(activation: str, law: Law, kind: str, tau: float) -> Array:
    """Angles at which the objective is above both neighbours."""
    theta = np.linspace(-np.pi, np.pi, SCAN, endpoint=False) + 0.37 / SCAN
    height = np.concatenate([objective(activation, law, kind, tau, part) for part in np.array_split(theta, 20)])
    return np.asarray(theta[(height > np.roll(height, 1)) & (height > np.roll(height, -1))])


def theory() -> xr.Dataset:
    """Numbers of maxima by case and temperature, and how many of them a scan does not share."""
    shape = len(CASES), 1 + len(TEMPERATURES)
    counts, on_walls, held, differ = (np.zeros(shape, dtype=int) for _ in range(4))
    for i, (activation, law, kind) in enumerate(CASES.values()):
        for j, tau in enumerate((np.inf, *TEMPERATURES)):
            more = {} if np.isinf(tau) else {"kind": kind, "temperature": tau}
            points = meanfield.solve(make_problem(activation, law.table, **more), "critical_points")
            stable = points.isel(point=points["stable"].values > 0)
            wall = stable["wall"].values > 0
            counts[i, j], on_walls[i, j] = len(wall), wall.sum()
            held[i, j] = np.count_nonzero(wall | (stable["rate_frozen"].values < 0.0))
            if not np.isinf(tau):
                scanned, angle = maxima_of_scan(activation, law, kind, tau), angles_of(stable["w"].values)
                off = np.concatenate([apart(scanned, angle), apart(angle, scanned)])
                differ[i, j] = np.count_nonzero(off > 2.0 * np.pi / SCAN)
    dims = ("case", "temperature")
    about = {
        "maxima": (counts, "local maxima"),
        "on_walls": (on_walls, "of them on walls"),
        "held": (held, "of them that stay maxima with the importance held fixed"),
        "differ": (differ, "maxima that a scan or the enumeration has alone"),
    }
    return xr.Dataset(
        {name: (dims, values, {"long_name": what}) for name, (values, what) in about.items()},
        {"case": list(CASES), "temperature": [np.inf, *TEMPERATURES]},
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether there are more maxima than under the uniform importance, at small and at all temperatures."""
    found = []
    for case in numbers["case"].values:
        one = numbers.sel(case=case)
        counts, uniform = one["maxima"].values[1:], int(one["maxima"][0])
        listed = ", ".join(map(str, counts))
        text = f"{case}: a non-uniform importance creates more optima"
        found += [
            Statement(
                f"{text}, at the smallest temperature",
                "paper, corollary 2 and section 5.1",
                bool(counts[-1] > uniform),
                f"{counts[-1]} against {uniform}",
            ),
            Statement(
                f"{text}, at every temperature",
                "paper, corollary 2",
                bool(np.all(counts > uniform)),
                f"uniform {uniform}; from tau = {TEMPERATURES[0]:g} to {TEMPERATURES[-1]:g}: {listed}",
            ),
        ]
    gained, held = numbers["maxima"].values[:, -1], numbers["held"].values[:, -1]
    uniform = numbers["maxima"].values[:, 0]
    found += [
        Statement(
            "it does so with the importance held fixed, as the corollary has it: at the smallest temperature",
            "paper, corollary 2",
            bool(np.all(held > uniform)),
            "; ".join(
                f"{case}: {h} of {g} remain, {u} uniform"
                for case, h, g, u in zip(numbers["case"].values, held, gained, uniform, strict=True)
            ),
        ),
        Statement(
            f"a scan of {SCAN:,} angles has the same maxima",
            "ours",
            int(numbers["differ"].sum()) == 0,
            f"{int(numbers['differ'].sum())} differ in {numbers['maxima'].size - len(CASES)} problems",
        ),
    ]
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Numbers of maxima, with the importance moving and held fixed."""
    figure = Figure(figsize=(8.5, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    places = np.arange(numbers.sizes["temperature"])
    labels = ["uniform", *(f"{tau:g}" for tau in numbers["temperature"].values[1:])]
    for axes, name, title in zip(
        panels, ("maxima", "held"), ("all local maxima", "with the importance held fixed"), strict=True
    ):
        for case, colour, marker in zip(numbers["case"].values, COLOURS, MARKERS, strict=False):
            axes.plot(
                places, numbers[name].sel(case=case), f"{marker}-", color=colour, label=case, markerfacecolor="none"
            )
        axes.set_title(title)
        axes.set_xticks(places, labels, rotation=45)
        axes.set(xlabel=r"temperature $\tau$", ylim=(0, None))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("number of local maxima of a filter")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize="small")
    return figure


STUDY = Study(theory, judge, draw)
