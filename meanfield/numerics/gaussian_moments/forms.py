"""Linear forms of independent normal variables at whose places functions have kinks, in order of directions."""

from __future__ import annotations

import math

import numpy as np

from meanfield.numerics.compiled.array_operations import add, dot, scale
from meanfield.process import own_numba as numba

NARROW = 0.7
"""Widths of smooth steps, in standard deviations, that need panels of their own."""

MOST_FORMS = 64
"""Largest number of forms with those that follow from pairs of them."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def turned_to(forms):  # type: ignore[no-untyped-def]
    """Orthonormal directions, shape (rank, rank), in the first of which linear forms of z vary, one after the other.

    Forms that vary in few directions cut the range of these alone.

    Parameters
    ----------
    forms : ndarray, shape (forms, rank)
    """
    rank, count = forms.shape[1], 0
    found, left = np.empty((rank, rank)), np.empty(rank)
    for i in range(len(forms) + rank):
        for k in range(rank):
            left[k] = forms[i, k] if i < len(forms) else 0.0
        if i >= len(forms):
            left[i - len(forms)] = 1.0
        size = dot(left, left)
        for _ in range(2):  # the second time takes away what rounding left
            for j in range(count):
                add(left, -dot(found[j], left), found[j])
        rest = dot(left, left)
        # Part of a form beyond the directions of others that is rounding, relative to its size.
        if count < rank and rest > 1e-13**2 * size:
            scale(left, 1.0 / math.sqrt(rest), found[count])
            count += 1
    return found.T.copy()


@numba.njit(cache=True, nogil=True, error_model="numpy")
def forms_between(normals, levels, mean, factor):  # type: ignore[no-untyped-def]
    """Forms of z for `panel_nodes` from forms of x = mean + factor z.

    Where the places of two forms in one direction cross, the average over that direction has a kink, or a layer if
    later directions hardly change these: what remains of the two without that direction is a form, too.

    Parameters
    ----------
    normals : ndarray, shape (forms, width)
    levels : ndarray, shape (forms,)

    Returns
    -------
    forms : ndarray, shape (all forms, rank + 1)
        The last column has what directions change of which the form is free.
    centres : ndarray, shape (all forms,)
    levels : ndarray, shape (all forms, 1)
    """
    rank = factor.shape[1]
    forms, centres, values = np.zeros((MOST_FORMS, rank + 1)), np.zeros(MOST_FORMS), np.zeros((MOST_FORMS, 1))
    last = np.empty(MOST_FORMS, np.int64)
    count = np.int64(0)
    for i in range(min(len(levels), MOST_FORMS)):
        size = 0.0
        for a in range(mean.size):
            if normals[i, a] != 0.0:
                centres[count] += normals[i, a] * mean[a]
                for k in range(rank):
                    forms[count, k] += normals[i, a] * factor[a, k]
                    size = max(size, abs(normals[i, a] * factor[a, k]))
        values[count, 0] = levels[i]
        count = _kept(forms, centres, values, last, count, size)
    for direction in range(rank - 1, 0, -1):
        for i in range(count):  # those that follow end in earlier directions
            for j in range(i):
                if count == MOST_FORMS or not (_cuts(forms[i], direction) and _cuts(forms[j], direction)):
                    continue
                share = forms[i, direction] / forms[j, direction]
                size = rest = 0.0
                for k in range(rank + 1):
                    difference = forms[i, k] - share * forms[j, k]
                    size = max(size, abs(forms[i, k]), abs(share * forms[j, k]))
                    if k < direction:
                        forms[count, k] = difference
                    else:
                        forms[count, k] = 0.0
                        rest += difference * difference if k > direction else 0.0
                forms[count, rank] = math.sqrt(rest)
                centres[count] = centres[i] - share * centres[j]
                values[count, 0] = values[i, 0] - share * values[j, 0]
                count = _kept(forms, centres, values, last, count, size)
    return forms[:count], centres[:count], values[:count]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _cuts(form, direction):  # type: ignore[no-untyped-def]
    """Whether a form has a place in a direction, which later ones hardly change."""
    later = dot(form[direction + 1 :], form[direction + 1 :])
    return form[direction] != 0.0 and later <= NARROW * NARROW * form[direction] * form[direction]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _kept(forms, centres, values, last, count, size):  # type: ignore[no-untyped-def]
    """Number of forms with the last one, if that depends on z and is no multiple of one before it.

    Coefficients that are rounding are set to 0.
    """
    last[count], rank = -1, forms.shape[1] - 1
    for k in range(rank + 1):
        if abs(forms[count, k]) <= 1e-14 * size:
            forms[count, k] = 0.0
        elif k < rank:
            last[count] = k
    new = last[count] >= 0
    for i in range(count if new else 0):
        if last[i] == last[count]:
            share = forms[count, last[i]] / forms[i, last[i]]
            apart = abs(values[count, 0] - centres[count] - share * (values[i, 0] - centres[i]))
            apart = max(apart, abs(forms[count, rank] - abs(share) * forms[i, rank]))
            for k in range(last[i]):
                apart = max(apart, abs(forms[count, k] - share * forms[i, k]))
            new = new and apart > 1e-13 * (size + abs(values[count, 0]) + abs(centres[count]))
    if new:
        return count + 1
    centres[count] = 0.0
    for k in range(rank + 1):
        forms[count, k] = 0.0
    return count
