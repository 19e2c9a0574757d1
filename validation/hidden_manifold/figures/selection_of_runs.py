"""Effect of leaving out runs by their outcome: the paper keeps 10 of 20 mixtures.

Those are left out where SGD with N(0, 1) differed much from the ODE, which is a selection on the outcome: what is kept
is nearer to the ODE than runs are. How much nearer is shown by runs that the selection has not seen, N(0, 1) with other
samples from the same starts. Here the half of the starts is kept whose first run with N(0, 1) has the smallest
tLog-RMSE of Q, R and v, each in units of its mean over starts. Points are starts, filled where they are kept;
horizontally is the run that decides. No other study here leaves out anything.

Runs from the same start are about as far from the ODE: what differs is by how much the dynamics of a start amplify
noise, sevenfold more than on average for one start with erf units. So the selection is one of starts, lowers all
discrepancies alike, and leaves their ratios as they are.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS
from validation.hidden_manifold.figures.discrepancy import above, over_units, written
from validation.hidden_manifold.figures.laws import STANDARDISED
from validation.hidden_manifold.figures.measured import METRICS, discrepancies
from validation.hidden_manifold.figures.sgd import ACTIVATIONS
from validation.hidden_manifold.figures.sweep import READINGS
from validation.study import Statement, Study

SHOWN = {"relu": "ReLU", "scaled_erf": "erf"}
KINDS = ("the run that decides", "other runs with N(0, 1)", *(f"mixtures, {said}" for said in READINGS.values()))

TICKS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Ticks of the deciding number."""

RESAMPLES = 2000
"""Number of bootstrap samples behind standard errors, which are good to 2 % then."""


def simulate() -> xr.Dataset:
    """Discrepancy of each start in units of their mean under N(0, 1), averaged over Q, R and v, by kind of run."""
    return xr.concat([_of_activation(discrepancies(name)) for name in ACTIVATIONS], "activation").assign_coords(
        activation=list(ACTIVATIONS), kind=list(KINDS)
    )


def _of_activation(numbers: xr.Dataset) -> xr.Dataset:
    parts = []
    for name in METRICS:
        gaussian = over_units(numbers[f"sgd_{name}_gaussian"])
        mixtures = over_units(numbers[f"sgd_{name}"]).mean(["m", "alpha"])
        each = [gaussian.isel(run=0), gaussian.isel(run=slice(1, None)).mean("run")]
        each += [mixtures.sel(law=STANDARDISED[law], drop=True) for law in READINGS]
        parts.append(xr.concat(each, "kind") / gaussian.mean())
    relative = sum(parts) / len(parts)
    return xr.Dataset({"sgd_relative": relative})


def kept(values: xr.DataArray) -> np.ndarray:
    """Whether each start is in the half with the smallest deciding number."""
    first = values.isel(kind=0).values
    return np.asarray(np.argsort(np.argsort(first)) < len(first) // 2)


def effect(values: xr.DataArray, kind: str) -> tuple[float, float]:
    """Mean over kept starts over that of all, and its standard error by resampling the starts."""
    table, rng = values.transpose("kind", "start").values, np.random.default_rng(0)
    place, starts = KINDS.index(kind), table.shape[1]

    def ratio(chosen: np.ndarray) -> float:
        half = chosen[np.argsort(table[0, chosen], kind="stable")][: starts // 2]
        return float(table[place, half].mean() / table[place, chosen].mean())

    resampled = [ratio(rng.integers(starts, size=starts)) for _ in range(RESAMPLES)]
    return ratio(np.arange(starts)), float(np.std(resampled))


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements on the effect of the selection on the runs that it sees, and on others."""
    found = []
    for activation, said in SHOWN.items():
        values = numbers.sgd_relative.sel(activation=activation)
        for kind in KINDS:
            mean, error = effect(values, kind)
            shown = f"{written(mean, error)} times the mean over all starts"
            lower = True if mean + 3 * error < 1 else False if mean - 3 * error > 1 else None
            found.append(Statement(f"{said}: the selection lowers the discrepancy of {kind}", "ours", lower, shown))
        sample = values.isel(start=np.flatnonzero(kept(values)))
        ratio = np.log(sample.sel(kind=KINDS[3]) / sample.sel(kind=KINDS[1]))
        found.append(
            Statement(
                f"{said}: among kept starts, too, a component for each sample takes SGD farther off than N(0, 1)",
                "ours",
                above(ratio),
                f"{float(np.exp(ratio.mean())):.0f} times as far",
            )
        )
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Discrepancies of other runs against that of the run that decides."""
    figure, axes = plt.subplots(1, 2, figsize=(8.5, 4.0), layout="constrained", sharey=True)
    for axis, (activation, said) in zip(axes, SHOWN.items(), strict=True):
        values = numbers.sgd_relative.sel(activation=activation)
        chosen = kept(values)
        for i, kind in enumerate(KINDS[1:]):
            for those, filled in ((chosen, True), (~chosen, False)):
                axis.plot(
                    values.isel(kind=0)[those], values.sel(kind=kind)[those], "os^"[i], color=COLOURS[i], ms=5,
                    mfc=COLOURS[i] if filled else "none", label=kind if filled else None,
                )  # fmt: skip
        axis.set(xscale="log", yscale="log", title=f"{said} units", xlabel=f"tLog-RMSE of {KINDS[0]}")
        axis.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axis.minorticks_off()
        axis.grid(color="0.92")
    axes[0].set_ylabel("tLog-RMSE of others, by start")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


STUDY = Study(xr.Dataset, judge, draw, simulate)
