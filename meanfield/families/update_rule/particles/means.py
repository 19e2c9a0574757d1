"""Averages over all samples that functions read, at the overlaps of a run before each step.

The law of what a function reads follows from the overlaps, as in `Draw.laws`, and rules of quadrature are those that
suit the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meanfield.families.update_rule.averages import components_of
from meanfield.families.update_rule.draws import Draw, Program
from meanfield.families.update_rule.laws import factor_of, laws_at
from meanfield.families.update_rule.particles.side_by_side import filled
from meanfield.families.update_rule.system import System
from meanfield.numerics.compiled.array_operations import add, dot
from meanfield.numerics.gaussian_moments.forms import forms_between
from meanfield.numerics.gaussian_moments.kernel import Law, Nodes, sum_over_nodes
from meanfield.numerics.gaussian_moments.panels import Panels, panel_nodes
from meanfield.numerics.gaussian_moments.rules import Rule, panels_of
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

MOST_DIRECTIONS = 3
"""Largest number of directions of a sum of terms that is averaged by products of rules; more take random points."""

POINTS = 2**10
"""Random points of each of eight randomisations: of five directions averages of tanh, ReLU and sign are off by 1e-3 to
4e-3 of the size of the function, less than a run of N = 4096 scatters."""


class Means(NamedTuple):
    """Averages that functions read, side by side, for compiled code.

    Parameters
    ----------
    address, outputs, widths : ndarray of int, shape (averages,)
        Of the function of a row, numbers of its values, and of columns of a row.
    probability, noise : ndarray, shape (averages, components)
        Of the components of the law of a row, 0 where there are fewer, with the factor of the variance of the noise.
    mean, covariance : ndarray, shapes (averages, components, width), (averages, components, width, width)
        Of a row without noise, with the coefficients of vectors in the place of fields.
    white, beside : ndarray, shape (averages, inputs, inputs)
        Covariance of the noise of inputs, white and beside the features.
    fields : ndarray of int, shape (averages,)
        Column of the first field.
    reads : ndarray of int, shape (averages, columns)
        Columns that are read; -1 where there are fewer.
    z, weights : ndarray, shapes (averages, directions, nodes), (averages, nodes)
        Nodes, the same at all overlaps.
    sizes : ndarray of int, shape (averages,)
        Number of these nodes; 0 where there are kinks.
    normals, levels : ndarray, shapes (averages, kinks, width), (averages, kinks)
    panels : Panels
        Between kinks.
    """

    address: IntArray
    outputs: IntArray
    widths: IntArray
    probability: FloatArray
    noise: FloatArray
    mean: FloatArray
    covariance: FloatArray
    white: FloatArray
    beside: FloatArray
    fields: IntArray
    reads: IntArray
    z: FloatArray
    weights: FloatArray
    sizes: IntArray
    normals: FloatArray
    levels: FloatArray
    panels: Panels


def means_of(system: System, rules: Sequence[Rule]) -> Means:
    """Averages of a system by rules of quadrature, which were chosen at the start."""
    programs = [program for _, program in system.means]
    nodes = [_nodes(rule, _law(system, *each)) for rule, each in zip(rules, system.means, strict=True)]
    laws = [draw.signals(program.reads) for draw, program in system.means]
    kinked = [rule for rule in rules if rule.kind == "kinked"]
    # Points of a panel where those of a rule for polynomials between kinks do not count in all directions.
    order = max([1, *(rule.order if rule.degree is None and rule.powers is None else 28 for rule in kinked)])
    return Means(
        address=np.array([program.call.address for program in programs], dtype=np.int64),
        outputs=np.array([program.outputs for program in programs], dtype=np.int64),
        widths=np.array([program.width for program in programs], dtype=np.int64),
        probability=_stacked([law.probability for law in laws], 1),
        noise=_stacked([law.noise for law in laws], 1),
        mean=_stacked([law.mean for law in laws], 2),
        covariance=_stacked([law.covariance for law in laws], 3),
        white=_stacked([draw.noise_left[0] for draw, _ in system.means], 2),
        beside=_stacked([draw.noise_left[1] for draw, _ in system.means], 2),
        fields=np.array([draw.first_field for draw, _ in system.means], dtype=np.int64),
        reads=_numbers([program.reads for program in programs]),
        z=_stacked([z for z, _ in nodes], 2),
        weights=_stacked([weights for _, weights in nodes], 1),
        sizes=np.array([len(weights) for _, weights in nodes], dtype=np.int64),
        normals=_stacked([program.kinks.normals for program in programs], 2),
        levels=_stacked([program.kinks.levels for program in programs], 1),
        panels=panels_of(order, max([1.0, *(rule.reach for rule in kinked)])),
    )


def _law(system: System, draw: Draw, program: Program) -> Law:
    """Law of a row with most directions, at overlaps like any others."""
    rng, K, M = np.random.default_rng(0), system.students, system.features
    X = rng.standard_normal((K, M + K))
    components = components_of(draw.laws(system.gram(X[:, :M], X @ X.T), program.reads), program.reads)
    return max((given.law for given in components), key=lambda law: law.factor.shape[1])


def _nodes(rule: Rule, law: Law) -> Nodes:
    """Nodes of a rule that are the same at all overlaps; none of one that has kinks."""
    if rule.kind == "kinked":
        return Nodes(np.zeros((0, 0)), np.zeros(0))
    if rule.kind in ("terms", "random"):
        few = rule.kind == "terms" and law.factor.shape[1] <= MOST_DIRECTIONS
        rule = Rule("smooth" if few else "random", rule.order if few else POINTS, rule.kinks, rule.reach)
    return rule.nodes(law)


def _stacked(arrays: Sequence[FloatArray], dims: int) -> FloatArray:
    """Arrays of some dims side by side, with zeros behind the smaller ones."""
    found = np.zeros((len(arrays), *np.max([each.shape for each in arrays] or [(0,) * dims], axis=0)))
    for place, each in zip(found, arrays, strict=True):
        place[tuple(slice(size) for size in each.shape)] = each
    return found


def _numbers(lists: Sequence[Sequence[int]]) -> IntArray:
    """Lists of numbers side by side, with -1 at the end of the shorter ones."""
    most = max(map(len, lists), default=0)
    return np.array([filled(each, most) for each in lists], dtype=np.int64).reshape(len(lists), most)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def write_means(means, overlaps, constants):  # type: ignore[no-untyped-def]
    """Write averages at some overlaps to the end of the constants.

    Parameters
    ----------
    means : Means
    overlaps : ndarray, shape (students, features + students)
        R and Q side by side.
    constants : ndarray
        See `System.constants`.
    """
    K, vectors = overlaps.shape
    M = vectors - K
    G, rest = np.eye(vectors), np.zeros((vectors, vectors))
    for k in range(K):
        for j in range(vectors):
            G[M + k, j] = G[j, M + k] = overlaps[k, j]
    for k in range(K):
        for j in range(K):
            rest[M + k, M + j] = G[M + k, M + j] - dot(G[M + k, :M], G[M + j, :M])
    place = constants.size - means.outputs.sum()
    for number in range(means.outputs.size):
        width = means.widths[number]
        L, columns = (width - means.fields[number]) // vectors, (means.reads[number] >= 0).sum()
        laws = laws_at(
            means.mean[number, :, :width].copy(),
            means.covariance[number, :, :width, :width].copy(),
            means.noise[number],
            means.white[number, :L, :L].copy(),
            means.beside[number, :L, :L].copy(),
            G,
            G,
            rest,
        )
        found = np.zeros(means.outputs[number])
        for component in range(means.probability.shape[1]):
            if means.probability[number, component] == 0.0:
                continue
            mean, factor = laws[0][component], factor_of(laws[1][component], means.reads[number, :columns])
            if means.sizes[number] == 0:
                forms = forms_between(means.normals[number, :, :width].copy(), means.levels[number], mean, factor)
                z, weights = panel_nodes(means.panels, *forms)
            else:
                z = means.z[number, : factor.shape[1], : means.sizes[number]].copy()
                weights = means.weights[number, : means.sizes[number]]
            first = sum_over_nodes(means.address[number], found.size, constants, mean, factor, z, weights)[0]
            add(found, means.probability[number, component], first)
        constants[place : place + found.size] = found
        place += found.size
