"""Three sparse priors of online regression: l1, elastic net, and SCAD, a prior of one's own whose pull ends.

The task is that of online lasso at the rate tau = 1, and all numbers are of t = 30, where training has come to rest.
Strengths lambda are in units of the rate; the elastic net is half l1 and half l2, and SCAD (Fan and Li, Journal of the
American Statistical Association 96, 1348, 2001) is a function of nine lines whose pull is that of l1 for |w| < lambda
and 0 from |w| = 3.7 lambda on. Left, mean square errors of weights, and of the debiased weights w + phi(w)/tau of l1;
right, the largest difference of true and false positive rate over thresholds of |w|. Where SGD was run, under SCAD, it
is four runs at N = 10,000 until t = 2.
"""

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import curve_style, place_legend
from validation.study import Statement, Study
from validation.update_rule.sparse.cases import agreement, regression, simulated, solved

RATE, STRENGTHS = 1.0, (0.05, 0.1, 0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1.0)
SCAD = "validation.update_rule.sparse.cases:scad"
PRIORS = ("l1", "elastic_net", SCAD)
LABELS = ("l1", "elastic net", "SCAD")


def problem_of(prior: str, strength: float, stop: float = 30.0) -> object:
    """Regression under a prior whose strength is in units of the rate."""
    parameters = {"parameters": {"width": strength}} if prior == SCAD else {}
    return regression(RATE, {"name": prior, "strength": RATE * strength} | parameters, stop, 2)


def theory() -> xr.Dataset:
    """Densities under all priors at all strengths."""
    return solved(problem_of, RATE, prior=PRIORS, strength=STRENGTHS).isel(time=-1)


def simulate() -> xr.Dataset:
    """SGD under SCAD."""
    return simulated(problem_of(SCAD, 0.4, 2.0), 10_000, [2.0])


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Bias and recovery of the three."""
    best, found = numbers["mean_square_error"].min("strength").values, numbers["youden"].max("strength").values
    shown = [", ".join(f"{name} {x:.4f}" for name, x in zip(LABELS, values, strict=True)) for values in (best, found)]
    return [
        Statement(
            "at its best strength SCAD has the smallest error, the elastic net the largest",
            "ours",
            best[2] < best[0] < best[1],
            shown[0],
        ),
        Statement(
            "SCAD recovers the support best", "ours", found.argmax() == 2, f"true less false positive rate {shown[1]}"
        ),
        *agreement(numbers),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors and recovery against strengths."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    for k, label in enumerate(LABELS):
        left.plot(numbers["strength"], numbers["mean_square_error"][k], label=label, **curve_style(k))
        right.plot(numbers["strength"], numbers["youden"][k], label=label, **curve_style(k))
    left.plot(numbers["strength"], numbers["debiased_mean_square_error"][0], label="l1, debiased", **curve_style(3))
    left.set(xlabel=r"strength $\lambda$", ylabel="mean square error")
    right.set(xlabel=r"strength $\lambda$", ylabel="true less false positive rate")
    place_legend(left)
    return figure


STUDY = Study(theory, judge, draw, simulate)
