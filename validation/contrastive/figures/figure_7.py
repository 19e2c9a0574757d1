"""Figure 7 of the paper: the rates of change dQ1/dt and dQ2/dt over the plane of (Q1, Q2), for equal and unequal laws.

The caption gives two Gaussian hidden variables with m2 = 1 for the upper row, and the laws of figure 3a for the lower
one. A Gaussian hidden variable with m2 = 1 is no feature at all: the data are isotropic, so that both overlaps decay
at one rate, everywhere. The paper's (S-50) has wrong factors (its two overlaps change at half the rate near 0), and
the drift measured in SGD along the diagonal decides. tau = 0.04 and m = 20 (see two_features.py).
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.plotting import COLOURS, LINES, MARKERS, share_legend
from validation.contrastive.figures.drift_curves import THIN
from validation.contrastive.figures.two_features import (
    BATCH_SIZE,
    LEARNING_RATE,
    UNEQUAL,
    Law,
    gaussian,
    printed_rate,
    problem_with,
    sgd_trajectories,
    trajectories,
)
from validation.study import Statement, Study, within_errors

CASES = {"equal": (gaussian(1.0), gaussian(1.0)), "unequal": UNEQUAL}

CELLS = 40

SHORT, SGD = 0.25, {"dimension": 40_000, "replicas": 20}
"""Final time, and dimension and replicas, of the SGD that measures the drift."""

MEASURED = np.linspace(0.1, 0.4, 4)
"""Values of Q1 = Q2 at which the drift is measured."""

STANDARD_ERRORS = 5.0
"""Largest accepted deviation in standard errors. Of 16 looks, with standard errors from 20 replicas, one is farther off
by chance once in 800 runs."""


def rate(laws: tuple[Law, Law], Q: np.ndarray) -> np.ndarray:
    """(dQ1/dt, dQ2/dt)/tau of the reduced ODE; Q of shape (..., 2)."""
    return np.asarray(2 * np.sqrt(Q) * VectorField(problem_with(laws))(np.sqrt(Q)) / LEARNING_RATE)


def theory() -> xr.Dataset:
    """Rates over the plane and along the diagonal, by the ODE and as printed."""
    centres = (np.arange(CELLS) + 0.5) / CELLS
    plane = np.stack(np.meshgrid(centres, centres), axis=-1)
    diagonal = np.repeat(np.linspace(0, 0.499, 51)[:, None], 2, axis=1)
    plane = np.where(plane.sum(axis=-1, keepdims=True) < 1, plane, np.nan)
    dims, along = ("case", "Q2", "Q1", "feature"), ("case", "diagonal", "feature")
    cases = CASES.values()
    return xr.Dataset(
        {
            "h": (dims, [rate(laws, plane) for laws in cases], {"long_name": "(dQ/dt)/tau of the reduced ODE"}),
            "h_diagonal": (along, [rate(laws, diagonal) for laws in cases], {"long_name": "the same at Q1 = Q2"}),
            "h_printed": (along, [printed_rate(laws, diagonal) for laws in cases], {"long_name": "(S-50) as printed"}),
            "h_mean": (("case", "measured", "feature"), [mean_change(laws) for laws in cases]),
        },
        {"Q1": centres, "Q2": centres, "diagonal": diagonal[:, 0], "case": list(CASES), "measured": MEASURED},
    )


def starts() -> np.ndarray:
    return np.sqrt(np.repeat(MEASURED[:, None], 2, axis=1))


def mean_change(laws: tuple[Law, Law]) -> np.ndarray:
    """(Q_t - Q_0)/(tau t) along the ODE over the time of the measurement."""
    Q = trajectories(laws, starts(), stop=SHORT, outputs=2) ** 2
    return np.asarray((Q[:, -1] - Q[:, 0]) / (LEARNING_RATE * SHORT))


def simulate() -> xr.Dataset:
    """Mean rates of change of the squared overlaps by SGD, with their standard errors."""
    changes, errors = [], []
    for laws in CASES.values():
        mean, error = sgd_trajectories(laws, starts(), stop=SHORT, outputs=2, **SGD)
        spread = error[:, -1] ** 2 * SGD["replicas"]  # E[q^2] is the square of the mean and the variance
        changes.append((mean[:, -1] ** 2 + spread - mean[:, 0] ** 2) / (LEARNING_RATE * SHORT))
        errors.append(2 * np.abs(mean[:, -1]) * error[:, -1] / (LEARNING_RATE * SHORT))
    dims = ("case", "measured", "feature")
    return xr.Dataset({"sgd_h": (dims, changes), "sgd_h_error": (dims, errors)})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements of the caption and the text, and the printed formula."""
    h, centres = numbers["h"].values, numbers["Q1"].values
    asymmetry = float(np.nanmax(np.abs(h[0] - h[0].swapaxes(0, 1)[..., ::-1])))
    relative = h[0] / np.stack(np.meshgrid(centres, centres), axis=-1)
    near_zero = numbers["h_diagonal"].values[1, 1]
    statements = [
        Statement(
            "equal laws give mirror images of dQ1/dt and dQ2/dt", "paper, section S-III-B", asymmetry < 1e-9,
            f"differ by {asymmetry:.1g} at most",
        ),
        Statement(
            "with Gaussian c and m2 = 1, m4 = 3, m6 = 15 a feature can be learnt",
            "paper, section S-III-B",
            bool(np.nanmax(relative) > 0),
            f"(dQ/dt)/(tau Q) = {np.nanmin(relative):.3f} everywhere, which is -240 tau/m",
        ),
        Statement(
            "with unequal laws both overlaps grow near the origin", "paper, section S-III-B",
            bool(np.all(near_zero > 0)),
            f"(dQ/dt)/tau = {near_zero[0]:.4f} and {near_zero[1]:.4f} at Q1 = Q2 = {float(numbers['diagonal'][1]):.3f}",
        ),
        Statement(
            "the Gaussian law with m2 = 1.2 has m6 = 25.95", "paper, caption of figure 7",
            abs(UNEQUAL[0].moments[2] - 25.95) < 0.005, f"15 m2^3 = {UNEQUAL[0].moments[2]:.2f}",
        ),
    ]  # fmt: skip
    if "sgd_h" in numbers:
        printed = [
            [np.interp(MEASURED, numbers["diagonal"], curve) for curve in case.T]
            for case in numbers["h_printed"].values
        ]
        for predicted, what, source in (
            (numbers["h_mean"].values, "the reduced ODE", "theory, section 2"),
            (np.swapaxes(printed, 1, 2), "(S-50) as printed", "paper, (S-50)"),
        ):
            away = np.abs(numbers["sgd_h"] - predicted) / numbers["sgd_h_error"]
            statements.append(within_errors(f"{what} is the drift of SGD", source, away, STANDARD_ERRORS))
    return statements


def draw(numbers: xr.Dataset) -> Figure:
    """A row for each case: both rates over the plane, and along the diagonal with SGD."""
    figure = Figure(figsize=(10, 6.2), layout="constrained")
    for row, (laws, panels) in enumerate(zip(CASES.values(), figure.subplots(2, 3), strict=True)):
        for k in range(2):
            _draw_plane(numbers["h"].values[row, ..., k], numbers, panels[k], k, figure)
            panels[k].set_title(rf"$\dot Q_{k + 1}/\tau$, $c_{k + 1}$ {laws[k].name}", fontsize="medium")
        _draw_diagonal(numbers.isel(case=row), panels[2])
    share_legend(figure)
    return figure


def _draw_plane(h: np.ndarray, numbers: xr.Dataset, axes, k: int, figure: Figure) -> None:  # type: ignore[no-untyped-def]
    largest = np.nanmax(np.abs(h))
    shown = np.ma.masked_invalid(h)
    mesh = axes.pcolormesh(
        numbers["Q1"],
        numbers["Q2"],
        shown,
        cmap="PuOr",
        vmin=-largest,
        vmax=largest,
        shading="nearest",
        rasterized=True,
    )
    if h[np.isfinite(h)].max() > 0:
        axes.contour(numbers["Q1"], numbers["Q2"], shown, [0.0], colors="black", linestyles=":")
    axes.set(xlabel="$Q_1$", ylabel="$Q_2$", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    figure.colorbar(mesh, ax=axes)


def _draw_diagonal(case: xr.Dataset, axes) -> None:  # type: ignore[no-untyped-def]
    axes.axhline(0, color="0.6", lw=0.8)
    for k, colour in enumerate((COLOURS[2], COLOURS[1])):
        style = {"color": colour, "linestyle": LINES[k]}
        axes.plot(case["diagonal"], case["h_diagonal"][:, k], label=rf"$\dot Q_{k + 1}/\tau$", **style)
        axes.plot(case["diagonal"], case["h_printed"][:, k], lw=THIN, **style)
        if "sgd_h" in case:
            bars = 2 * case["sgd_h_error"][:, k]
            axes.errorbar(case["measured"], case["sgd_h"][:, k], bars, fmt=MARKERS[k], color=colour, ms=4, capsize=2)
    axes.plot([], [], color="0.3", lw=THIN, label="thin: (S-50) as printed")
    axes.plot([], [], "o", color="0.3", ms=4, label=f"SGD, t = 0 to {SHORT:g}")
    axes.set(xlabel="$Q_1 = Q_2$", ylabel=r"$\dot Q/\tau$", title=rf"$\tau/m = {LEARNING_RATE / BATCH_SIZE:g}$")


STUDY = Study(theory, judge, draw, simulate)
