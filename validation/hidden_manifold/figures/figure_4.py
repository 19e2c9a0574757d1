"""Figure 4 of the paper: SGD in time with a standardised mixture, m = 2, alpha = 9, ReLU units.

The paper says that the dynamics closely resemble those under one Gaussian but for the region where training is nearly
complete and randomness is high. They do where each latent draws its own component, and not where a sample has one: then
each of the two components still has a mean of length sqrt(D). Lines are means over 10 runs from the start of figure 2.
"""

from functools import partial

import numpy as np
import xarray as xr

from validation.hidden_manifold.figures.discrepancy import above, over_units, ratio_with_error, statement, with_error
from validation.hidden_manifold.figures.examples import distances, draw_examples, simulate, theory
from validation.hidden_manifold.figures.laws import STANDARDISED
from validation.hidden_manifold.figures.measured import METRICS
from validation.hidden_manifold.figures.sweep import READINGS, SMALL_DISCREPANCY
from validation.study import Statement, Study

ROWS = {STANDARDISED[law]: said for law, said in READINGS.items()}


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether the dynamics are those under one Gaussian, and where runs differ most."""
    found = []
    for law, said in ROWS.items():
        scale = {name: over_units(np.abs(numbers[f"theory_{name}"])).mean("time") for name in METRICS}
        far = {name: each / scale[name] for name, each in distances(numbers, law).items()}
        large = {name: above(each, SMALL_DISCREPANCY) for name, each in far.items()}
        found.append(
            statement(
                f"{said}: the dynamics closely resemble those under one Gaussian",
                "paper, section IV.2, figure 4",
                {name: None if each is None else not each for name, each in large.items()},
                {name: f"{with_error(each)} of its mean size from the ODE" for name, each in far.items()},
            )
        )
    spreads = {name: _late_to_early(numbers, name) for name in METRICS}
    found.append(
        statement(
            "randomness is higher where training is nearly complete than before",
            "paper, figure 4",
            {name: above(np.log(ratio)) for name, ratio in spreads.items()},
            {name: f"runs differ {ratio_with_error(ratio)} times as much" for name, ratio in spreads.items()},
        )
    )
    return found


def _late_to_early(numbers: xr.Dataset, name: str) -> xr.DataArray:
    """Distance of each run from the mean of all, in the region over before it, for one component for each latent."""
    values = numbers[f"sgd_{name}"].sel(law=next(iter(ROWS)))
    square = over_units((values - values.mean("run")) ** 2).rename(run="start")
    late = numbers.time >= numbers.saturated
    return np.sqrt(square.where(late).mean("time") / square.where(~late).mean("time"))


STUDY = Study(theory, judge, partial(draw_examples, rows=ROWS), partial(simulate, tuple(ROWS)))
