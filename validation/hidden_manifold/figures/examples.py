"""Ten runs of SGD from one start, m = 2 and alpha = 9, with ReLU units: what figures 2 and 4 share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting import curve_style
from validation.hidden_manifold.figures.discrepancy import over_units
from validation.hidden_manifold.figures.laws import GAUSSIAN, Law, Samples, make_law
from validation.hidden_manifold.figures.measured import METRICS
from validation.hidden_manifold.figures.mixtures import FloatArray
from validation.hidden_manifold.figures.runs import AT_ONCE, DIMS, STEPS, N, order_parameters, start_of, train
from validation.hidden_manifold.figures.sgd import ACTIVATIONS, Start, Student
from validation.hidden_manifold.figures.start_from_run import solve_from

SEED, RUNS, ALPHA, M = 0, 10, 9.0, 2
TESTS = 8192
"""Number of samples of each law on which the error of its students is measured, to 2 %."""

SATURATED = 0.05
"""Share of the fall of the ODE's error that is left when training is nearly complete: the paper shades that region."""


TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Ticks of the generalisation error."""


class TestSet(NamedTuple):
    """Inputs and outputs of a ReLU teacher."""

    x: FloatArray
    y: FloatArray

    @classmethod
    def of(cls, start: Start, fields: FloatArray) -> TestSet:
        """From the arguments of the inputs, and the teacher's fields."""
        inputs = start.W.shape[1]
        signs = np.where(fields[:, :inputs] > 0, np.float32(1), np.float32(-1))
        return cls(signs, np.maximum(fields[:, inputs:], 0.0) @ start.vt)

    def error(self, student: Student) -> float:
        """Mean of (yhat - y)^2/2 over samples; 0 for erf units, which these figures do not show."""
        if not student.relu:
            return 0.0
        own = self.x @ student.W.T.astype(np.float32) / np.sqrt(self.x.shape[1])
        return float(0.5 * np.mean((np.maximum(own, 0.0) @ student.v - self.y) ** 2))


def theory() -> xr.Dataset:
    """The ODE of one Gaussian from the start."""
    start, means, _ = start_of(SEED)
    solved = solve_from(start, "relu", STEPS / N)
    error = solved.generalisation_error
    left = (error - error[-1]) / (error[0] - error[-1])
    saturated = solved.time.where(left < SATURATED).min()
    renamed = {name: f"theory_{name}" for name in ("Q", "R", "v", "generalisation_error")}
    return solved.rename(renamed).assign(saturated=saturated, means=("component", ALPHA * means[M].number))


def simulate(laws: Sequence[str]) -> xr.Dataset:
    """Order parameters and errors of ten students for N(0, 1) and each law."""
    start, means, rng = start_of(SEED)
    names = [GAUSSIAN, *laws]
    made = [make_law(name, start, means[M], ALPHA) for name in names]
    tests = Samples(start, (M,), TESTS, np.random.default_rng([SEED, 3]))
    tests.draw(TESTS)
    sets = [TestSet.of(start, tests.of(law)) for law in made]
    runs = [_one_run(start, made, sets, own) for own in rng.spawn(RUNS)]
    dims = DIMS | {"generalisation_error": ()}
    relu = ACTIVATIONS.index("relu")
    variables: dict[str, Any] = {
        f"sgd_{name}": (("run", "law", "time", *rest), np.stack([run[name][:, relu] for run in runs]))
        for name, rest in dims.items()
    }
    return xr.Dataset(variables, {"law": names, "time": STEPS / N})


def _one_run(
    start: Start, laws: Sequence[Law], sets: Sequence[TestSet], rng: np.random.Generator
) -> dict[str, FloatArray]:
    def measure(start: Start, students: Sequence[Student]) -> dict[str, FloatArray]:
        both = len(ACTIVATIONS)
        errors = [sets[i // both].error(student) for i, student in enumerate(students)]
        return order_parameters(start, students) | {"generalisation_error": np.array(errors)}

    return train(start, laws, Samples(start, (M,), AT_ONCE, rng), measure)


def distances(numbers: xr.Dataset, law: str) -> dict[str, xr.DataArray]:
    """Root mean square over times of SGD's distance from the ODE, by metric; the dim of runs is called start."""
    found = {}
    for name in METRICS:
        square = (numbers[f"sgd_{name}"].sel(law=law) - numbers[f"theory_{name}"]) ** 2
        found[name] = over_units(np.sqrt(square.mean("time"))).rename(run="start")
    return found


def draw_examples(numbers: xr.Dataset, rows: dict[str, str]) -> Figure:
    """A row for each reading, with panels of the error, Q, R and v in time."""
    figure, axes = plt.subplots(len(rows), 4, figsize=(12.0, 2.9 * len(rows)), layout="constrained", sharex=True)
    for row, (law, said) in zip(axes, rows.items(), strict=True):
        for axis, name in zip(row, ("generalisation_error", *METRICS), strict=True):
            _draw(axis, numbers, name, law)
        row[0].set_ylabel(said)
        row[0].set_yscale("log")
        row[0].set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        row[0].minorticks_off()
    for axis, title in zip(axes[0], ("generalisation error", "$Q$", "$R$", "$v$"), strict=True):
        axis.set_title(title)
    for axis in axes[-1]:
        axis.set_xlabel("time $t$ = steps$/N$")
    handles = [
        plt.Line2D([], [], color="0.2", lw=1.0, label=r"ODE of $\mathcal{N}(0, 1)$"),
        plt.Line2D([], [], color="0.2", ls="none", marker=".", label=r"SGD with $\mathcal{N}(0, 1)$"),
        plt.Line2D([], [], lw=1.6, label="SGD with the mixture (each entry in a style)", **curve_style(1)),
        plt.Rectangle((0, 0), 1, 1, color="0.92", label="training nearly complete"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _draw(axis: Axes, numbers: xr.Dataset, name: str, law: str) -> None:
    dims = [dim for dim in ("student", "student_", "teacher") if dim in numbers[f"sgd_{name}"].dims]

    def curves(values: xr.DataArray) -> FloatArray:
        return (values.stack(entry=dims) if dims else values.expand_dims("entry")).transpose("entry", "time").values

    sgd = numbers[f"sgd_{name}"].mean("run")
    entries = (0, 1, 3) if name == "Q" else range(4 if name == "R" else 2 if name == "v" else 1)
    axis.axvspan(float(numbers.saturated), float(numbers.time[-1]), color="0.92", lw=0)
    for place, entry in enumerate(entries):
        axis.plot(numbers.time, curves(numbers[f"theory_{name}"])[entry], color="0.2", lw=1.0, zorder=2)
        axis.plot(numbers.time[::3], curves(sgd.sel(law=GAUSSIAN))[entry][::3], ".", color="0.2", ms=4, zorder=2)
        axis.plot(numbers.time, curves(sgd.sel(law=law))[entry], lw=1.6, zorder=3, **curve_style(1 + place))
    axis.set_xscale("log")
    axis.set_xlim(float(numbers.time[0]), float(numbers.time[-1]))
