"""Arrangement of features among channels, in words."""

from __future__ import annotations

import numpy as np

from meanfield.families.contrastive.variables.channels import ARRANGEMENTS
from meanfield.typing import FloatArray

COINCIDING = 1.0 - 1e-6
"""Least overlap |M_kl| of channels that coincide."""

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
    present = size >= 0.01  # smaller overlaps are no part of what a channel has learnt
    learnt = present[0]
    if not learnt.any():
        return NOTHING
    if not learnt.all():
        return SOME
    pairs = np.abs(M[np.triu_indices(len(M), 1)]) >= COINCIDING
    if pairs.any():
        return COLLAPSED if pairs.all() else PARTLY
    if len(size) > 1 and np.any(size[0] - size[1] < 1e-6):  # no feature of the channel is its main one
        return MIXTURE
    main = np.abs(q).argmax(axis=0)
    if len(set(main.tolist())) < len(main):
        return TILTED
    return DISTINCT if len(size) == 1 or not present[1].any() else ROTATED
