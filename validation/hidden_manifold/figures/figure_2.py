"""Figure 2 of the paper: SGD in time with a mixture that is not standardised, m = 2, alpha = 9, ReLU units.

The paper says that the dynamics diverge from those under one Gaussian, and shades a region where training is nearly
complete and the error stays small. Lines are means over 10 runs from one start, with N = 1000; the error is that on
samples of the mixture itself, and Q and R are those of the paper's (9) and (10) from the weights. In both readings
inputs have a mean of length sqrt(N), along which the student moves within single steps, before the ODE has begun.
"""

from functools import partial

import numpy as np
import xarray as xr

from validation.hidden_manifold.figures.discrepancy import above, mean_and_error, ratio_with_error, statement, written
from validation.hidden_manifold.figures.examples import distances, draw_examples, simulate, theory
from validation.hidden_manifold.figures.laws import GAUSSIAN
from validation.hidden_manifold.figures.sweep import READINGS
from validation.study import Statement, Study

UNCHANGED = 0.1
"""Share of the fall of the error by which it may still change over the last half decade."""


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether the dynamics differ, and whether the error ends small and unchanged."""
    found = []
    for law, said in READINGS.items():
        ratios = {name: each / distances(numbers, GAUSSIAN)[name] for name, each in distances(numbers, law).items()}
        found.append(
            statement(
                f"{said}: the dynamics diverge from those under one Gaussian",
                "paper, section IV.1, figure 2",
                {name: above(np.log(ratio)) for name, ratio in ratios.items()},
                {name: f"{ratio_with_error(ratio)} times as far from the ODE" for name, ratio in ratios.items()},
            )
        )
        error = numbers.sgd_generalisation_error.sel(law=law)
        error = error.rename(run="start")
        last, before = error.isel(time=slice(-5, None)).mean("time"), error.isel(time=slice(-10, -5)).mean("time")
        first = error.isel(time=0)
        change, left = (before - last) / (first - last), last / first
        verdicts = {"change": above(np.abs(change), UNCHANGED), "left": above(left, UNCHANGED)}
        found.append(
            statement(
                f"{said}: in the end the error is small and unchanged",
                "paper, figure 2",
                {name: None if large is None else not large for name, large in verdicts.items()},
                {
                    "left of its first value": written(*mean_and_error(left)),
                    "share of its fall in the last half decade": written(*mean_and_error(change)),
                },
            )
        )
    return found


STUDY = Study(theory, judge, partial(draw_examples, rows=READINGS), partial(simulate, tuple(READINGS)))
