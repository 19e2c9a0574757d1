"""Random draws of hidden variables inside compiled code, from random-access streams.

A sample of all hidden variables takes the same number of uniforms and normals every time, so that each step knows where
in the streams its numbers are. All samples of a step are drawn together, one kind of number after the other, in short
loops that vectorise. Rejections, which are rare, take their numbers from a stream of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from meanfield.ensembles.gamma_variables import gamma
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.process import own_numba as numba
from meanfield.typing import BoolArray, FloatArray, IntArray


class HiddenDraws(NamedTuple):
    """Recipes of all groups of hidden variables that are drawn together, as plain arrays.

    Parameters
    ----------
    cumulative : ndarray, shape (components,)
        Cumulative probabilities within each group.
    mean, deviation : ndarray, shape (components, d1)
        Zero in the columns of other groups.
    box, gamma_shape, gamma_power, exponential : ndarray, shape (groups,)
    components, features, uniforms, normals : ndarray, shape (groups + 1,)
        Where each group begins among the components, the features, and the kinds of numbers that a sample takes.
    """

    cumulative: FloatArray
    mean: FloatArray
    deviation: FloatArray
    box: FloatArray
    gamma_shape: FloatArray
    gamma_power: FloatArray
    exponential: BoolArray
    components: IntArray
    features: IntArray
    uniforms: IntArray
    normals: IntArray


def hidden_draws(laws: Sequence[HiddenPart]) -> HiddenDraws:
    """Put the recipes of independent groups side by side."""
    recipes = [law.recipe() for law in laws]
    features = _starts(recipe.mean.shape[1] for recipe in recipes)
    components = _starts(len(recipe.probability) for recipe in recipes)
    mean, deviation = (np.zeros((components[-1], features[-1])) for _ in range(2))
    for g, recipe in enumerate(recipes):
        place = slice(components[g], components[g + 1]), slice(features[g], features[g + 1])
        mean[place], deviation[place] = recipe.mean, recipe.deviation
    gamma = [recipe.gamma_power != 0 for recipe in recipes]
    choice = [len(recipe.probability) > 1 or recipe.box > 0 for recipe in recipes]
    spread = [recipe.mean.shape[1] if recipe.deviation.any() else 0 for recipe in recipes]
    return HiddenDraws(
        np.concatenate([np.empty(0), *(np.cumsum(recipe.probability) for recipe in recipes)]),
        mean,
        deviation,
        np.array([recipe.box for recipe in recipes]),
        np.array([recipe.gamma_shape for recipe in recipes]),
        np.array([recipe.gamma_power for recipe in recipes]),
        np.array([recipe.exponential for recipe in recipes], dtype=bool),
        components,
        features,
        _starts(a + b for a, b in zip(choice, gamma, strict=True)),
        _starts(a + b for a, b in zip(spread, gamma, strict=True)),
    )


def changed_draws(draws: HiddenDraws, law: HiddenPart, group: int) -> list[tuple[FloatArray, FloatArray]]:
    """Parts of the recipes of a group, and what they are at some steps, shape (steps, ...).

    Parameters
    ----------
    law : HiddenPart
        Law of the group, with moments of shape (steps, 1, 1).
    """
    a, b, f, g = draws.components[group], draws.components[group + 1], draws.features[group], draws.features[group + 1]
    recipe = law.recipe()
    cumulative = np.cumsum(recipe.probability, axis=-1)
    wanted = (
        (draws.cumulative[a:b], cumulative),
        (draws.mean[a:b, f:g], recipe.mean),
        (draws.deviation[a:b, f:g], recipe.deviation),
        (draws.box[group : group + 1], np.asarray(recipe.box)),
    )
    return [(part, values) for part, values in wanted if values.ndim > 2]


def _starts(sizes: Any) -> IntArray:
    """Cumulative sums, with 0 before the first."""
    return np.concatenate([[0], np.cumsum(list(sizes))]).astype(np.int64)


@numba.njit(inline="always", error_model="numpy")
def draw_hidden(draws, key, replica, slot, uniforms, normals, chosen, c):  # type: ignore[no-untyped-def]
    """Write samples of the hidden variables to `c`.

    Parameters
    ----------
    draws : HiddenDraws
    key, replica, slot
        Address of the rejections: of G groups, group g of sample b owns `slot` + b G + g.
    uniforms, normals : ndarray
        m numbers of each kind, one for each sample: draws.uniforms[-1] and draws.normals[-1] kinds, and perhaps other
        numbers behind.
    chosen : ndarray of int, shape (m,)
        Working space.
    c : ndarray, shape (d1, m)
    """
    m = chosen.size
    for g in range(draws.box.size):
        u, n = uniforms[draws.uniforms[g] * m :], normals[draws.normals[g] * m :]
        first, last = draws.features[g], draws.features[g + 1]
        _choose(draws.cumulative, draws.components[g], draws.components[g + 1] - 1, u, chosen)
        for k in range(first, last):
            _centre(draws.mean, k, chosen, c[k])
        if draws.box[g] > 0.0:
            for k in range(first, last):
                _shift(draws.box[g], u, c[k])
        if draws.gamma_power[g] != 0.0 and not draws.exponential[g]:
            _spread_by_gamma(draws, g, key, replica, slot, uniforms, normals, chosen, c)
        elif draws.normals[g + 1] > draws.normals[g]:
            for k in range(first, last):
                _spread(draws.deviation, k, chosen, n[(k - first) * m :], c[k])
        if draws.exponential[g]:
            _exponentiate(draws, g, key, replica, slot, uniforms, normals, c)


@numba.njit(inline="always", error_model="numpy")
def _choose(cumulative, low, last, uniforms, chosen):  # type: ignore[no-untyped-def]
    """Choose a component for every sample, from `low` to `last`."""
    # For few components, comparing all of them, for all samples together, beats a bisection for each.
    if last - low > 16:
        for b in range(chosen.size):
            first, end = low, last
            while first < end:
                middle = (first + end) // 2
                if cumulative[middle] < uniforms[b]:
                    first = middle + 1
                else:
                    end = middle
            chosen[b] = first
    else:
        chosen[:] = low
        for a in range(low, last):
            for b in range(chosen.size):
                chosen[b] += cumulative[a] < uniforms[b]


@numba.njit(inline="always", error_model="numpy")
def _centre(mean, k, chosen, c):  # type: ignore[no-untyped-def]
    """Set feature k of every sample to the mean of its component."""
    for b in range(chosen.size):
        c[b] = mean[chosen[b], k]


@numba.njit(inline="always", error_model="numpy")
def _shift(box, uniforms, c):  # type: ignore[no-untyped-def]
    """Add numbers uniform on the box of each variable."""
    for b in range(c.size):
        c[b] += box * (2.0 * uniforms[b] - 1.0)


@numba.njit(inline="always", error_model="numpy")
def _spread(deviation, k, chosen, normals, c):  # type: ignore[no-untyped-def]
    """Add normals with the width of each sample's component."""
    for b in range(chosen.size):
        c[b] += deviation[chosen[b], k] * normals[b]


@numba.njit(inline="always", error_model="numpy")
def _spread_by_gamma(draws, g, key, replica, slot, uniforms, normals, chosen, c):  # type: ignore[no-untyped-def]
    """Add normals times a power of a gamma variable that all features of group g share; its numbers are the last."""
    m, first = chosen.size, draws.features[g]
    u, n = uniforms[(draws.uniforms[g + 1] - 1) * m :], normals[(draws.normals[g + 1] - 1) * m :]
    for b in range(m):
        own = slot + b * draws.box.size + g
        factor = gamma(draws.gamma_shape[g], n[b], u[b], key, replica, own) ** draws.gamma_power[g]
        for k in range(first, draws.features[g + 1]):
            normal = normals[(draws.normals[g] + k - first) * m + b]
            c[k, b] += draws.deviation[chosen[b], k] * factor * normal


@numba.njit(inline="always", error_model="numpy")
def _exponentiate(draws, g, key, replica, slot, uniforms, normals, c):  # type: ignore[no-untyped-def]
    """Take exponentials of the features of group g, times a power of a gamma variable that all share."""
    m = c.shape[1]
    u, n = uniforms[(draws.uniforms[g + 1] - 1) * m :], normals[(draws.normals[g + 1] - 1) * m :]
    for b in range(m):
        factor = 1.0
        if draws.gamma_power[g] != 0.0:
            own = slot + b * draws.box.size + g
            factor = gamma(draws.gamma_shape[g], n[b], u[b], key, replica, own) ** draws.gamma_power[g]
        for k in range(draws.features[g], draws.features[g + 1]):
            c[k, b] = factor * math.exp(c[k, b])
