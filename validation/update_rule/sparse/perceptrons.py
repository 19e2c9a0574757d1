"""Sparse perceptrons: what l1 does to the error of a perceptron, for a sparse teacher and for a dense one.

A step adds tau sign(y) x where the student is wrong, tau = 0.7, takes lambda sign(w) off every weight, and goes back to
the sphere, on which the error is arccos(q)/pi. One coordinate of the sparse teacher in ten is not 0, those of the dense
one are Gaussian. Left, errors at t = 20 against the strength lambda; right, true against false positive rate of the
sparse teacher's support at t = 2, at all thresholds of |w|. Where SGD was run, it is four runs at N = 10,000.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import curve_style, place_legend
from validation.study import Statement, Study
from validation.update_rule.sparse.cases import agreement, draw_rates, problem, simulated, solved

STRENGTHS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
TEACHERS = {"sparse": {"law": "three_point", "fourth_moment": 10.0}, "dense": {"law": "gaussian"}}


def problem_of(teacher: str, strength: float, stop: float = 20.0, outputs: int = 11) -> object:
    """Perceptron rule on the sphere."""
    features = [{"initial_overlap": 0.1, "coordinate": TEACHERS[teacher]}]
    prior, sphere = {"name": "l1", "strength": strength}, {"model": {"constraint": "sphere"}}
    return problem("perceptron", 0.7, prior, stop, outputs, features=features, **sphere)


def theory() -> xr.Dataset:
    """Densities for both teachers at all strengths."""
    found = solved(problem_of, teacher=tuple(TEACHERS), strength=STRENGTHS).sel(time=[2.0, 20.0])
    return found.assign(error=np.arccos(found["R"]) / np.pi)


def simulate() -> xr.Dataset:
    """SGD of the sparse teacher at one strength."""
    return simulated(problem_of("sparse", 0.1, 2.0, 2), 10_000, [2.0])


def judge(numbers: xr.Dataset) -> list[Statement]:
    """What l1 does to errors, and to recovery."""
    sparse, dense = numbers["error"].isel(time=-1).values
    found = numbers["youden"].sel(teacher="sparse", time=2.0).values
    best = STRENGTHS[sparse.argmin()]
    return [
        Statement(
            "l1 lowers the error for a sparse teacher",
            "ours",
            sparse.min() < sparse[0],
            f"{sparse.min():.4f} at {best:g}, {sparse[0]:.4f} without",
        ),
        Statement(
            "and raises it for a dense one",
            "ours",
            bool((np.diff(dense) > 0.0).all()),
            f"{dense[0]:.4f} without, {dense[1]:.4f} at {STRENGTHS[1]:g}",
        ),
        Statement(
            "early, at t = 2, it recovers no more of the support than thresholds do without it",
            "ours",
            found.max() < found[0] + 0.01,
            f"true less false positive rate at most {found.max():.3f}, {found[0]:.3f} without",
        ),
        *agreement(numbers),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors against strengths, and rates at all thresholds."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    for k, teacher in enumerate(TEACHERS):
        left.plot(
            numbers["strength"],
            numbers["error"].sel(teacher=teacher, time=20.0),
            label=f"{teacher} teacher",
            **curve_style(k),
        )
    left.set(xlabel=r"strength $\lambda$", ylabel="error")
    draw_rates(right, numbers.sel(teacher="sparse", time=2.0), STRENGTHS[:6:2])
    place_legend(left), place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
