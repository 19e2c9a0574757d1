"""Table of all averages of a closure with one feature, which are functions of q alone.

The variable is arcsin q, in which functions of q and of sqrt(1 - q^2) are both smooth. Where |q| -> 1 they may be
singular, since a kinked activation takes an atom of B on its kink badly; the table ends before that, or earlier if the
law of the hidden variable has so many atoms that it does not pay to resolve them, and beyond its end the averages are
evaluated one by one.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.closures.brackets import bracket_table
from meanfield.families.contrastive.closures.expectation import Expectation, at_many
from meanfield.families.contrastive.closures.mixture import Mixture, reach_of
from meanfield.families.contrastive.closures.row_moments import no_moments
from meanfield.ingredients.activations import Activation
from meanfield.numerics.piecewise import Table, tabulate
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

MOST_PANELS = 150
"""Largest number of panels of a table; more take too long to compute."""

GROUPS = (0, 1, 1, 1, 0)
CENTRED_GROUPS = (*GROUPS, 2, 2, 2)
"""Group of each average: those that are added to each other share one, so that only the largest of them needs all
digits."""

Key = tuple[tuple[tuple[int, ...], bytes], ...]


def as_key(mixture: Mixture) -> Key:
    """Mixture as a hashable value: shapes and numbers of its parts."""
    return tuple((np.shape(part), np.asarray(part, dtype=float).tobytes()) for part in mixture)


@lru_cache(maxsize=64)
def overlap_table(
    activation: Activation, noise: tuple[float, float, float], centred: bool, key: Key
) -> tuple[Table, float]:
    """Table of all averages as functions of arcsin q.

    Parameters
    ----------
    activation, noise, centred
        See `bracket_table`.
    key : tuple
        The law of the hidden variable, see `as_key`.

    Returns
    -------
    table : Table
    reach : float
        Largest |q| in the table; 0 if the averages are not resolved anywhere.
    """
    *arrays, fineness = (np.frombuffer(numbers).reshape(shape) for shape, numbers in key)
    mixture = Mixture._make([*arrays, float(fineness)])
    expectation = Expectation(bracket_table(activation, noise, centred, reach_of(mixture)), mixture, no_moments())

    def rows(angles: FloatArray) -> FloatArray:
        found = at_many(expectation, np.sin(angles), np.cos(angles))
        bar.update(angles.size)
        return found

    groups = CENTRED_GROUPS if centred else GROUPS
    with progress_bar(math.inf, "averages over hidden variables", "overlap") as bar:
        for end in (0.01, 0.1, 0.5):  # values of sqrt(1 - q^2) where the table may end
            reach = math.acos(end)
            try:
                overlap = tabulate(rows, (), reach, "the closure", groups=groups, most_panels=MOST_PANELS)
            except InputError:
                continue
            return overlap, math.sin(reach)
    return tabulate(lambda x: np.zeros((len(groups), x.size)), (), 1.0, "nothing"), 0.0
