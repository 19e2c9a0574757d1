"""Figure 4 of the paper: the cosine similarity of the recovery state against the variance eta of the noise.

The main text says that independent noise makes it smaller and smaller; that correlated noise (here one view gets the
negative of the other's) makes it larger than without noise over a broad range of eta, with an optimum; that recovery
vanishes at a critical eta; and that ReLU behaves alike. Left m2 = 1 and tau/m = 0.0094, as in figure 10. Right ReLU
with m2 = 1.2 and tau/m = 0.1: without noise ReLU has no recovery state unless m2 > 1 + tau/m. Squares are SGD,
started at Q = 0.9 whatever eta is, once it is stationary.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from noisy_views import CORRELATIONS
from one_feature import Ensemble, find_states, largest_growth, overlap_by_sgd, problem_with, started, threshold
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq, minimize_scalar
from study import Statement, Study, run_study

from meanfield.plotting import COLOURS
from meanfield.problem import Problem

MODELS = {
    "quadratic": {"m2": 1.0},
    "relu": {"m2": 1.2, "activation": "relu", "learning_rate": 1.0},
}
LARGEST = {"quadratic": 1.5, "relu": 10.0}
"""Values of eta at which no recovery state is left."""

ANGLES = np.linspace(0, np.pi, 13)[:-1]
"""Of eta = end (1 - cos(angle))/2: the similarity is smooth in it both at the end of recovery, where it has a vertical
tangent, and at eta = 0, where that of ReLU is smooth in sqrt(eta)."""

CHECKED = {
    "quadratic": {"independent": (0.05, 0.1, 0.15, 0.18, 0.3), "opposite": (0.2, 0.45, 0.7, 0.9, 1.2)},
    "relu": {"independent": (0.1, 0.2, 0.35, 0.5, 2.0), "opposite": (0.3, 0.8, 2.0, 3.0, 8.0)},
}
"""Where SGD is run; the last of each has no recovery state."""

START = 0.9
RUNS = {"quadratic": Ensemble(40.0, dimension=5000, replicas=8), "relu": Ensemble(100.0, dimension=3000, replicas=8)}

STANDARD_ERRORS = 5.5
"""Student's law with 7 degrees of freedom is farther out once in 1000 looks; there are 20."""

PAPER = "paper, section IV.C"
DIMS = ("model", "views")


def problem_at(model: str, views: str, eta: float) -> Problem:
    """A point of the figure."""
    return problem_with(eta=eta, correlation=CORRELATIONS[views], **MODELS[model])


def strength(end: float | np.ndarray, angle: float | np.ndarray) -> float | np.ndarray:
    """The eta of an angle."""
    return end * (1 - np.cos(angle)) / 2


def similarity(model: str, views: str, eta: float) -> float:
    """Overlap of the recovery state; NaN without one."""
    return float(np.sqrt(find_states(problem_at(model, views, eta)).recovery))


def theory() -> xr.Dataset:
    """Recovery states from eta = 0 to where they vanish, and where SGD is run."""
    cases = [[(model, views) for views in CORRELATIONS] for model in MODELS]
    end = np.array([[threshold(largest_growth, lambda eta, c=c: problem_at(*c, eta), 0.0, LARGEST[c[0]]) for c in row]
                    for row in cases])  # fmt: skip
    eta = strength(end[..., None], ANGLES)
    checked = np.array([[CHECKED[model][views] for model, views in row] for row in cases])
    branch, predicted = (
        np.array([[[similarity(*case, x) for x in eta] for case, eta in zip(*pair, strict=True)]
                  for pair in zip(cases, etas, strict=True)])
        for etas in (eta, checked)
    )  # fmt: skip
    return xr.Dataset(
        {
            "eta": ((*DIMS, "angle"), eta, {"long_name": "variance of the noise"}),
            "similarity": ((*DIMS, "angle"), branch, {"long_name": "stationary cosine similarity of recovery"}),
            "eta_end": (DIMS, end, {"long_name": "variance of the noise at which the recovery state vanishes"}),
            "checked_eta": ((*DIMS, "checked"), checked, {"long_name": "variance of the noise in SGD"}),
            "predicted": ((*DIMS, "checked"), np.nan_to_num(predicted), {"long_name": "what is expected of SGD"}),
        },
        {"model": list(MODELS), "views": list(CORRELATIONS), "angle": ANGLES},
    )


def simulate() -> xr.Dataset:
    """Stationary overlap of SGD."""
    runs = [
        [
            [
                overlap_by_sgd(started(problem_at(model, views, eta), START, RUNS[model]))
                for eta in CHECKED[model][views]
            ]
            for views in CORRELATIONS
        ]
        for model in MODELS
    ]
    mean, error = np.moveaxis(np.array(runs)[..., -1], -1, 0)
    return xr.Dataset(
        {
            "sgd_q": ((*DIMS, "checked"), mean, {"long_name": "overlap in SGD, mean over replicas"}),
            "sgd_q_error": ((*DIMS, "checked"), error, {"long_name": "standard error of that mean"}),
        }
    )


def best_and_last(case: xr.Dataset) -> tuple[float, float, float]:
    """The eta with the largest similarity, that similarity, and the eta up to which it is above that without noise."""
    curve = CubicSpline(case["angle"], case["similarity"])
    last = float(case["angle"][-1])
    top = float(minimize_scalar(lambda x: -curve(x), bounds=(0.0, last), method="bounded").x)
    level = float(case["similarity"][0])
    back = brentq(lambda x: curve(x) - level, top, last) if curve(top) > level > curve(last) else np.nan
    best, beyond = (strength(float(case["eta_end"]), x) for x in (top, back))
    return best, float(curve(top)), beyond


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The main text's statements on noise, for both activations."""
    statements = []
    for model, name in (("quadratic", "x^2"), ("relu", "ReLU")):
        independent, opposite = (numbers.sel(model=model, views=views) for views in CORRELATIONS)
        falls, level = independent["similarity"].values, float(opposite["similarity"][0])
        best, top, beyond = best_and_last(opposite)
        ends = [float(case["eta_end"]) for case in (independent, opposite)]
        statements += [
            Statement(
                f"{name}: independent noise makes the similarity smaller and smaller", PAPER,
                (np.diff(falls) < 0).all(),
                f"from {falls[0]:.3f} to {falls[-1]:.3f} close to the end",
            ),
            Statement(
                f"{name}: opposite noise makes it larger over a broad range, with an optimum", PAPER,
                0 < best < beyond and beyond > 0.5 * ends[1],
                f"{top:.4f} at eta = {best:.2f}, above {level:.4f} up to {beyond:.2f}",
            ),
            Statement(
                f"{name}: recovery vanishes at a critical eta", PAPER, np.isfinite(ends).all(),
                f"independent {ends[0]:.4f}, opposite {ends[1]:.4f}",
            ),
        ]  # fmt: skip
    if "sgd_q" in numbers:
        found = numbers["predicted"] > 0
        away = np.abs(numbers["sgd_q"] - numbers["predicted"]) / numbers["sgd_q_error"]
        worst, lost = float(away.max()), int((~found).sum())
        text = f"SGD has the similarity of the ODE's state, and none at the {lost} eta beyond the critical ones"
        number = f"off by {worst:.1f} standard errors at most"
        statements.append(Statement(text, "theory, section 8", worst < STANDARD_ERRORS, number))
    return statements


def draw(numbers: xr.Dataset) -> Figure:
    """A panel for each activation."""
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, model, title in zip(panels, MODELS, (r"$\sigma(x) = x^2$, $m_2 = 1$", "ReLU, $m_2 = 1.2$"), strict=True):
        _draw_model(axes, numbers.sel(model=model))
        axes.set(title=title, xlabel=r"variance $\eta$ of the noise", ylim=(-0.05, 1))
    panels[0].set_ylabel("stationary cosine similarity $q$")
    panels[1].legend(frameon=False, fontsize="small", loc="center right")
    return figure


def _draw_model(axes: Axes, numbers: xr.Dataset) -> None:
    axes.axhline(float(numbers["similarity"][0, 0]), color=COLOURS[2], lw=1, ls="--", label="without noise")
    for views, colour in (("opposite", COLOURS[0]), ("independent", COLOURS[1])):
        at = numbers.sel(views=views)
        curve, x = CubicSpline(at["angle"], at["similarity"]), np.linspace(0, ANGLES[-1], 200)
        axes.plot(strength(float(at["eta_end"]), x), curve(x), color=colour, lw=2, label=f"{views} noise")
        axes.axvline(float(at["eta_end"]), color=colour, lw=0.8, ls=":")
        error = 2 * at["sgd_q_error"]
        axes.errorbar(at["checked_eta"], at["sgd_q"], error, fmt="s", color=colour, ms=4, capsize=2, mfc="white")
        if views == "opposite":
            best, top, _ = best_and_last(at)
            axes.plot(best, top, "o", color=colour, ms=7, label="optimum")
    axes.plot([], [], ":", color="0.3", lw=0.8, label="end of recovery")
    axes.errorbar([], [], [], fmt="s", color="0.3", ms=4, mfc="white", capsize=2, label="SGD")


STUDY = Study(theory, judge, draw, simulate)

if __name__ == "__main__":
    run_study(STUDY, __file__)
