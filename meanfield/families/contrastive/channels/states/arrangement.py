"""Arrangement of features among channels, in words."""

from __future__ import annotations

import numpy as np

from meanfield.families.contrastive.variables.channels import ARRANGEMENTS
from meanfield.typing import FloatArray

PRESENT = 0.01
"""Least overlap |q_fk| that counts as a part of what channel k has learnt."""

COINCIDING = 1.0 - 1e-6
"""Least overlap |M_kl| of channels that coincide."""

EVEN = 1e-6
"""Largest difference of the two largest parts of a channel that has no main feature."""

NOTHING, SOME, COLLAPSED, PARTLY, TILTED, DISTINCT, ROTATED, MIXTURE = ARRANGEMENTS


def arrangement_of(q: FloatArray, M: FloatArray) -> str:
    """Arrangement of a state of several channels.

    Parameters
    ----------
    q : ndarray, shape (d1, d2)
    M : ndarray, shape (d2, d2)

    Returns
    -------
    str
        `nothing learned`; `some channels only` if others have learnt nothing; `collapsed` if all channels coincide up
        to signs and `partly collapsed` if some do; `distinct` if each has a feature of its own, `rotated` if each has a
        main feature of its own and parts of others, `tilted` if channels with the same main feature do not coincide;
        `mixture` if a channel has no main feature.
    """
    size = np.sort(np.abs(q), axis=0)[::-1]
    learnt = size[0] >= PRESENT
    if not learnt.any():
        return NOTHING
    if not learnt.all():
        return SOME
    pairs = np.abs(M[np.triu_indices(len(M), 1)]) >= COINCIDING
    if pairs.any():
        return COLLAPSED if pairs.all() else PARTLY
    if len(size) > 1 and np.any(size[0] - size[1] < EVEN):
        return MIXTURE
    main = np.abs(q).argmax(axis=0)
    if len(set(main.tolist())) < len(main):
        return TILTED
    return DISTINCT if len(size) == 1 or np.all(size[1] < PRESENT) else ROTATED
