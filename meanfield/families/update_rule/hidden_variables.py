"""Law of all hidden variables of a sample as a finite mixture of Gaussians, which averages over rules take.

Laws that are no such mixture stand for themselves by nodes. Those of scale mixtures have a Gaussian of some width each,
over which averages are smooth wherever a rule jumps. A uniform variable has none, so that its nodes lie between the
places at which a rule jumps or bends for this variable alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.draws import Hidden
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.numerics.gaussian_moments.rules import Kinks
from meanfield.typing import FloatArray

NODES = 32
"""Number of nodes of a law where nobody asks for fewer or more: averages of smooth rules are exact to 1e-9."""

MOST_COMPONENTS = 20_000
"""Largest number of components of a mixture: an average takes about a second."""


def hidden_of(laws: Sequence[HiddenPart], count: int = NODES, kinks: Kinks | None = None) -> Hidden:
    """Joint law of hidden variables.

    Parameters
    ----------
    laws : sequence of HiddenPart
        Of independent groups of them.
    count : int, optional
        Number of nodes of laws that are no finite mixtures.
    kinks : Kinks, optional
        Of what is averaged, as forms of the hidden variables alone.

    Raises
    ------
    InputError
        If there are more than `MOST_COMPONENTS` components, or a kink has to do with several continuous variables.
    """
    if not laws:
        return Hidden(np.ones(1), np.zeros((1, 0)), np.zeros((1, 0, 0)), np.empty(0))
    parts = [law.nodes(count, [*_breaks(g, laws, kinks)] if kinks else ()) for g, law in enumerate(laws)]
    sizes = [len(p) for p, _, _ in parts]
    if math.prod(sizes) > MOST_COMPONENTS:
        raise InputError(
            f"hidden variables have {' x '.join(map(str, sizes))} components together, and averages take at most "
            f"{MOST_COMPONENTS:,}; give some of them gaussian laws, or laws of fewer values"
        )
    probability = reduce(np.multiply.outer, (p for p, _, _ in parts)).ravel()
    index = np.indices(sizes).reshape(len(parts), -1)
    mean, variance = (
        np.concatenate([part[which][i] for part, i in zip(parts, index, strict=True)], axis=1) for which in (1, 2)
    )
    return Hidden(
        probability,
        mean,
        np.einsum("hj,jk->hjk", variance, np.eye(mean.shape[1])),
        np.repeat([law.largest_power for law in laws], [law.dimension for law in laws]),
        all(law.exact for law in laws),
    )


def _breaks(group: int, laws: Sequence[HiddenPart], kinks: Kinks) -> Iterator[float]:
    """Values of the variable of a group at which kinks of hidden variables alone are crossed."""
    starts = np.cumsum([0, *(law.dimension for law in laws)])
    if laws[group].box == 0.0:
        return
    for normal, level in zip(*kinks, strict=True):
        own = normal[starts[group]]
        others = [g for g in range(len(laws)) if g != group and normal[starts[g] : starts[g + 1]].any()]
        if own == 0.0:
            continue
        if any(laws[g].box > 0.0 for g in others):
            raise InputError(
                "model.rule: a kink is a form of several uniform variables alone, and its edge would cross the nodes "
                "of both; give all but one of them other laws, or take data.signal = 'spiked' for kinks at fields"
            )
        values = [normal[starts[g] : starts[g + 1]] @ laws[g].nodes(2)[1].T for g in others]
        yield from ((level - sum(each)) / own for each in itertools.product(*values))


def kinks_of_hidden(kinks: Kinks, forms: FloatArray) -> Kinks:
    """Kinks that hidden variables alone cross, as forms of these.

    Parameters
    ----------
    kinks : Kinks
        Forms of rows.
    forms : ndarray, shape (width, variables)
        What columns of a row say of the hidden variables; NaN in rows of columns that say other things, too.
    """
    along = np.where(kinks.normals[:, :, None] == 0.0, 0.0, kinks.normals[:, :, None] * forms).sum(axis=1)
    alone = np.isfinite(along).all(axis=1)
    return Kinks(along[alone], kinks.levels[alone])
