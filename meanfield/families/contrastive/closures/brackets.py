"""Table of the functions of B that closures average: products of sigma and sigma' of both views, averaged over noise.

Theta_l = B + zeta_l, and the average over (zeta1, zeta2) at given B is a function of one variable that does not depend
on the overlaps. It is tabulated once. With s_l = sigma(Theta_l), p_l = sigma'(Theta_l) the rows are those of
`DRIFT_ROWS` and `DIFFUSION_ROWS`; without centring those of `WITHOUT_CENTRING` suffice.
"""

from __future__ import annotations

import numpy as np

from meanfield.families.contrastive.closures.views import STRONGER, averages_over_noise, exponents
from meanfield.ingredients.activations import Activation
from meanfield.numerics.piecewise import NAME_THE_KINK, Table, tabulate, with_derivatives
from meanfield.numerics.remembering import remembered
from meanfield.typing import FloatArray

DRIFT_ROWS = ("p1 s2 + s1 p2", "p1", "p2")
DIFFUSION_ROWS = (
    "s1^2 p2^2", "s2^2 p1^2", "s1 s2 p1 p2",
    "s1 p2^2", "s2 p1^2", "s1 p1 p2", "s2 p1 p2", "p2^2", "p1^2", "p1 p2",
    "s1", "s2", "s1^2", "s2^2", "s1 s2",
)  # fmt: skip
WITHOUT_CENTRING = (*DRIFT_ROWS[:1], *DIFFUSION_ROWS[:3])


@remembered(64)
def bracket_table(activation: Activation, noise: tuple[float, float, float], centred: bool, reach: float) -> Table:
    """All rows that a closure needs, as functions of B on [-reach, reach].

    Parameters
    ----------
    activation : Activation
    noise : tuple of float
        v11, v12, v22.
    centred : bool
        Whether mean outputs are subtracted: else only the uncentred products are kept.
    reach : float

    Returns
    -------
    Table
        Drift rows, their derivatives in B, then diffusion rows.
    """
    names = (*DRIFT_ROWS, *DIFFUSION_ROWS) if centred else WITHOUT_CENTRING
    first, *others = names
    products, breaks, layers = averages_over_noise(activation, noise, reach, exponents(*first.split(" + "), *others))

    def rows(points: FloatArray) -> FloatArray:
        values = products(points)
        return np.concatenate([values[:1] + values[1:2], values[2:]])

    remedy = STRONGER if any(noise) else NAME_THE_KINK
    table = tabulate(rows, breaks, reach, "model.activation", remedy, layers)
    return with_derivatives(table, len(DRIFT_ROWS) if centred else 1)
