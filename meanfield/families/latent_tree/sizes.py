"""Sizes of exact averages: entries of tables, and different outputs, whose pairs or triples losses are sums over."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

from meanfield.errors import InputError
from meanfield.families.latent_tree.problem import Loss, Problem
from meanfield.families.latent_tree.tables import Tables, needs_the_root
from meanfield.families.latent_tree.weights import Array
from meanfield.networks.distinct import MOST_PAIRS, count_different, reach_of
from meanfield.networks.normalisation import Normalisation
from meanfield.networks.population import MOMENTS
from meanfield.networks.triples import MOST_TRIPLES, SUMMED, check_triples, combinations
from meanfield.problems.problem_keys import with_values
from meanfield.typing import FloatArray

MOST_NUMBERS = 3e7
"""Largest number of entries of the tables of all latents: a gigabyte with what is computed from them."""

BLOCK = 1 << 16
"""Number of outputs that are counted at once."""


def size_of(problem: Problem) -> float:
    """Number of entries of the tables of all latents."""
    shape = problem.shape
    levels = range(1, shape.depth + needs_the_root(problem))
    logarithms = [math.log(shape.latents[level] * shape.width(level)) for level in levels]
    total, count = 0.0, math.log(shape.values)
    for below, logarithm in zip(shape.children, logarithms, strict=False):
        count *= below
        total += math.exp(min(count + logarithm, 700.0))
    return total


def check_tables(problem: Problem) -> None:
    """Refuse problems whose averages cannot be computed from tables of all configurations.

    Raises
    ------
    InputError
        With the size, and what to do instead.
    """
    numbers = size_of(problem)
    if numbers > MOST_NUMBERS:
        root = " of the root and" if needs_the_root(problem) else ""
        raise InputError(
            f"tree.depth = {problem.tree.depth} with tree.children = {problem.tree.children}: exact averages need "
            f"tables{root} of all latents below with {numbers:.3g} entries, and at most {MOST_NUMBERS:.3g} fit; lower "
            f"depth, children or network.nodes_per_latent, {_smaller(problem)}or use the method 'particles'"
        )
    if problem.data is None and problem.loss.kind in (*SUMMED, "exact"):  # rings have four outputs
        _check_pairs(problem)


def _check_pairs(problem: Problem) -> None:
    """Refuse losses whose number of different outputs at the start is too large."""
    contrast = problem.contrast
    count = problem.shape.configurations[-1]
    triples = contrast.kind in SUMMED
    if (combinations(contrast, count) <= MOST_TRIPLES) if triples else count <= math.sqrt(MOST_PAIRS):
        return
    different, reach = different_outputs(problem)
    if triples:
        check_triples(contrast, different, reach)
    elif float(different) ** 2 > MOST_PAIRS:
        raise InputError(
            f"loss.kind = 'exact': {different:,} different outputs have {float(different) ** 2:.3g} pairs, and at most "
            f"{MOST_PAIRS:.3g} are taken; lower tree.depth, set loss.kind to 'simple', or use the method 'particles'"
        )


@lru_cache(maxsize=1)
def different_outputs(problem: Problem) -> tuple[int, float]:
    """Number of different outputs of a tree at the start, and a bound of their distances."""
    parts = Tables(without_root(problem)).forward(problem.initial_weights).parts[-1][0]
    blocks = partial(_outputs, problem.normalisation, parts)
    return count_different(blocks()), reach_of(blocks)


def _outputs(normalisation: Normalisation, parts: Array) -> Iterator[FloatArray]:
    """Outputs for all configurations of the leaves from what children of the root add, block by block.

    The order of the sums is that of `Tables.forward`, whose table of the root may be large.
    """
    half = (len(parts) + 1) // 2
    rows, others = _sums(parts[0], parts[1:half]), parts[half:]
    step = max(1, BLOCK // (parts.shape[1] ** len(others) * parts.shape[2]))
    for first in range(0, len(rows), step):
        yield normalisation.value(_sums(rows[first : first + step], others))


def _sums(rows: Array, children: Array) -> Array:
    """Sums of rows and of those that more children add, for all their configurations."""
    for child in children:
        rows = (rows[:, None, :] + child).reshape(-1, rows.shape[-1])
    return rows


def without_root(problem: Problem) -> Problem:
    """Problem with the same network, of which outputs at the root are not needed."""
    plain = {"network.output_normalisation": False, "network.epsilon": 0.0, "loss": Loss()}
    return with_values(problem, plain)


def _smaller(problem: Problem) -> str:
    """Remedy for problems whose root needs no table with another output or loss."""
    if not needs_the_root(problem):
        return ""
    changes: list[Any] = []
    if problem.network.output_normalisation:
        changes.append("network.output_normalisation to false")
    if problem.loss.kind not in MOMENTS:
        changes.append("loss.kind to 'simple'")
    return f"set {' and '.join(changes)}, "
