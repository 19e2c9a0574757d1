"""Figure 4 of the paper: the cosine similarity of the recovery state against the variance eta of the noise.

The main text says that independent noise makes it smaller and smaller; that correlated noise (here one view gets the
negative of the other's) makes it larger than without noise over a broad range of eta, with an optimum; that recovery
vanishes at a critical eta; and that ReLU behaves alike. Left m2 = 1 and tau/m = 0.0094, as in figure 10. Right ReLU
with m2 = 1.2 and tau/m = 0.1: without noise ReLU has no recovery state unless m2 > 1 + tau/m. Squares and triangles are
SGD, started at Q = 0.9 whatever eta is, once it is stationary.
"""

from collections.abc import Callable, Iterable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq, minimize_scalar

from meanfield.families.contrastive.problem import Problem
from meanfield.plotting import COLOURS, share_legend
from validation.contrastive.figures.noisy_views import CORRELATIONS
from validation.contrastive.figures.one_feature import (
    Ensemble,
    end_of_recovery,
    find_states,
    overlap_by_sgd,
    problem_with,
    started,
)
from validation.study import Statement, Study, within_errors

MODELS = {
    "quadratic": {"m2": 1.0},
    "relu": {"m2": 1.2, "activation": "relu", "learning_rate": 1.0},
}
LARGEST = {"quadratic": 1.5, "relu": 10.0}
"""Values of eta at which no recovery state is left."""

ANGLES = np.linspace(0, np.pi, 13)[:-1]
"""Angles of the values eta = end (1 - cos(angle))/2: the similarity is smooth in the angle both at the end of recovery,
where it has a vertical tangent, and at eta = 0, where that of ReLU is smooth in sqrt(eta)."""

CHECKED = {
    "quadratic": {"independent": (0.05, 0.1, 0.15, 0.18, 0.3), "opposite": (0.2, 0.45, 0.7, 0.9, 1.2)},
    "relu": {"independent": (0.1, 0.2, 0.35, 0.5, 2.0), "opposite": (0.3, 0.8, 2.0, 3.0, 8.0)},
}
"""Values of eta at which SGD is run; the last of each has no recovery state."""

START = 0.9
RUNS = {"quadratic": Ensemble(40.0, dimension=5000, replicas=8), "relu": Ensemble(100.0, dimension=3000, replicas=8)}

STANDARD_ERRORS = 5.5
"""Largest accepted deviation in standard errors. Student's law with 7 degrees of freedom is farther out once in 1000
looks; there are 20."""

PAPER = "paper, section IV.C"
DIMS = ("model", "views")


def problem_at(model: str, views: str, eta: float) -> Problem:
    """A point of the figure."""
    return problem_with(eta=eta, correlation=CORRELATIONS[views], **MODELS[model])


def similarity(model: str, views: str, eta: float) -> float:
    """Overlap of the recovery state; NaN without one."""
    return float(np.sqrt(find_states(problem_at(model, views, eta)).recovery))


def strength(end: float | np.ndarray, angle: float | np.ndarray) -> float | np.ndarray:
    """The eta of an angle."""
    return end * (1 - np.cos(angle)) / 2


def theory() -> xr.Dataset:
    """Recovery states from eta = 0 to where they vanish, where they are best, and at the eta of SGD."""
    rows = [_joined([branch(model, views) for views in CORRELATIONS], "views", CORRELATIONS) for model in MODELS]
    return _joined(rows, "model", MODELS)


def _joined(parts: list[xr.Dataset], dim: str, names: Iterable[str]) -> xr.Dataset:
    return xr.concat(parts, xr.DataArray(list(names), dims=dim, name=dim))


def branch(model: str, views: str) -> xr.Dataset:
    """All of this for one activation and one kind of views."""
    end = end_of_recovery(lambda eta: problem_at(model, views, eta), 0.0, LARGEST[model])
    eta = strength(end, ANGLES)
    values = np.array([similarity(model, views, x) for x in eta])
    best, beyond = _helpful(lambda angle: similarity(model, views, strength(end, angle)), values)
    checked = np.array(CHECKED[model][views])
    predicted = np.nan_to_num([similarity(model, views, x) for x in checked])
    return xr.Dataset(
        {
            "eta": ("angle", eta, {"long_name": "variance of the noise"}),
            "similarity": ("angle", values, {"long_name": "stationary cosine similarity of recovery"}),
            "eta_end": ((), end, {"long_name": "variance of the noise at which the recovery state vanishes"}),
            "eta_best": ((), strength(end, best), {"long_name": "that at which the similarity is largest"}),
            "eta_beyond": ((), strength(end, beyond), {"long_name": "that above which noise is worse than none"}),
            "checked_eta": ("checked", checked, {"long_name": "variance of the noise in SGD"}),
            "predicted": ("checked", predicted, {"long_name": "what is expected of SGD: 0 without recovery"}),
        },
        {"angle": ANGLES},
    )


def _helpful(similarity: Callable[[float], float], values: np.ndarray) -> tuple[float, float]:
    """The angle of the largest similarity, and that of the one without noise behind it; 0 and 0 if noise never helps.

    `values` are those at ANGLES.
    """
    top = int(values.argmax())
    if top == 0:
        return 0.0, 0.0
    around = ANGLES[top - 1], ANGLES[top + 1]
    best = minimize_scalar(lambda x: -similarity(x), bounds=around, method="bounded", options={"xatol": 1e-3}).x
    back = brentq(lambda x: similarity(x) - values[0], best, ANGLES[-1], xtol=1e-4)
    return float(best), float(back)


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


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The main text's statements on noise, for both activations."""
    statements = []
    for model, name in (("quadratic", "x^2"), ("relu", "ReLU")):
        independent, opposite = (numbers.sel(model=model, views=views) for views in CORRELATIONS)
        falls, level = independent["similarity"].values, float(opposite["similarity"][0])
        best, beyond, *ends = (
            float(x)
            for x in (opposite["eta_best"], opposite["eta_beyond"], independent["eta_end"], opposite["eta_end"])
        )
        top = float(opposite["similarity"].max())
        statements += [
            Statement(
                f"{name}: independent noise makes the similarity smaller and smaller", PAPER,
                (np.diff(falls) < 0).all(),
                f"from {falls[0]:.3f} to {falls[-1]:.3f} close to the end",
            ),
            Statement(
                f"{name}: opposite noise makes it larger over a broad range, with an optimum", PAPER,
                0 < best < beyond and beyond > 0.5 * ends[1],
                f"it is best at eta = {best:.2f}, with {top:.3f}, and above {level:.3f} up to {beyond:.2f}",
            ),
            Statement(
                f"{name}: recovery vanishes at a critical eta", PAPER,
                not independent["predicted"][-1] and not opposite["predicted"][-1],
                f"independent {ends[0]:.4f}, opposite {ends[1]:.4f}",
            ),
        ]  # fmt: skip
    if "sgd_q" in numbers:
        found = numbers["predicted"] > 0
        away = np.abs(numbers["sgd_q"] - numbers["predicted"]) / numbers["sgd_q_error"]
        lost = int((~found).sum())
        text = f"SGD has the similarity of the ODE's state, and none at the {lost} eta beyond the critical ones"
        statements.append(within_errors(text, "theory, section 8", away, STANDARD_ERRORS))
    return statements


def draw(numbers: xr.Dataset) -> Figure:
    """A panel for each activation."""
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, model, title in zip(panels, MODELS, (r"$\sigma(x) = x^2$, $m_2 = 1$", "ReLU, $m_2 = 1.2$"), strict=True):
        _draw_model(axes, numbers.sel(model=model))
        axes.set(title=title, xlabel=r"variance $\eta$ of the noise", ylim=(-0.05, 1))
    panels[0].set_ylabel("stationary cosine similarity $q$")
    share_legend(figure)
    return figure


def _draw_model(axes: Axes, numbers: xr.Dataset) -> None:
    axes.axhline(float(numbers["similarity"][0, 0]), color=COLOURS[2], lw=1, ls="-.", label="without noise")
    styles = ("opposite", COLOURS[0], "-", "s"), ("independent", COLOURS[1], "--", "^")
    for views, colour, line, marker in styles:
        at = numbers.sel(views=views)
        curve, x = CubicSpline(at["angle"], at["similarity"]), np.linspace(0, ANGLES[-1], 200)
        axes.plot(strength(float(at["eta_end"]), x), curve(x), color=colour, lw=2, ls=line, label=f"{views} noise")
        axes.axvline(float(at["eta_end"]), color=colour, lw=0.8, ls=":")
        error = 2 * at["sgd_q_error"]
        axes.errorbar(at["checked_eta"], at["sgd_q"], error, fmt=marker, color=colour, ms=4, capsize=2, mfc="white")
        if views == "opposite":
            axes.plot(at["eta_best"], at["similarity"].max(), "o", color=colour, ms=7, label="optimum")
    axes.plot([], [], ":", color="0.3", lw=0.8, label="end of recovery")
    axes.errorbar([], [], [], fmt="s", color="0.3", ms=4, mfc="white", capsize=2, label="SGD")


STUDY = Study(theory, judge, draw, simulate)
