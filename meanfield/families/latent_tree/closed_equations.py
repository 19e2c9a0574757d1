"""Closed forms of the selectivity of nodes of small latent trees, of which the flow and the operators are made.

Source: latent_tree.md, sections 1.4, 3.1 and 3.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import sympy as sp

from meanfield.explanation.equations import Equation
from meanfield.explanation.formulas import Table, dot, entry, index, rate_of, real, rounded
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.settings import SphereStart

i, j, n, OUTPUTS = index("i j n n_out")


def closed_lines(problem: Problem, table: Table) -> Iterator[Equation | str]:
    """Selectivities as functions of weights, and what is made of them; latent_tree.md, sections 1.4, 3.1 and 3.4."""
    shape = problem.shape
    plain = problem.loss.kind == "simple" and not problem.normalisation.active and shape.depth <= 2
    if not plain or (problem.data is None and not problem.tree.is_symmetric_binary):
        return
    if shape.latents[1] * shape.configurations[1] > 64:  # terms of all selectivities together
        return
    yield r"Half the difference that the root, or the object, makes for the mean of a node with the weights $w$ is"
    several = shape.latents[1] > 1
    for mu in range(shape.latents[1]):
        yield Equation(real(f"s_{mu + 1}" if several else "s"), _selectivity(problem, mu, table))
    yield from _training_lines(problem, table)


def _training_lines(problem: Problem, table: Table) -> Iterator[Equation | str]:
    """Outputs, the loss, rates of weights, and operators, by selectivities."""
    shape, start = problem.shape, problem.network.initial
    if problem.data is None:
        p = [table.known(f"p_{value}", f"tree.root[{value}]", each) for value, each in enumerate(problem.tree.root)]
    else:
        p = [sp.Rational(1, 2)] * 2
    o, s, Delta = 4 * p[0] * p[1], real("s"), entry("Delta", i)
    gradient = sp.Symbol(r"{\nabla s}", real=True)
    averages = isinstance(start, SphereStart)
    if shape.depth == 1:
        yield Equation(Delta, 2 * entry("s", i))
    else:
        edges = [
            table.known(f"rho_0{mu + 1}", f"tree.polarity[0][{mu}]", float(rho), False)
            for mu, rho in enumerate(problem.tree.polarities[1])
        ]
        parts = (rho * sp.Sum(entry("u", i, mu, j) * entry("s", mu, j), (j, 1, n)) for mu, rho in enumerate(edges, 1))
        yield (
            r"with $s_{\mu}$ of the nodes $j$ of the latent $\mu$. Nodes have the weights $u$ at the root"
            + rf", and $v = {shape.nodes}\,u$" * averages
            + r", and the outputs have the differences $\Delta$:"
        )
        yield Equation(Delta, 2 * sum(parts))
    yield Equation(r"\mathcal L", -p[0] * p[1] * sp.Sum(Delta**2, (i, 1, OUTPUTS)))
    if shape.depth == 1:
        yield Equation(rate_of("w"), 2 * o * s * gradient)
        yield Equation(r"O_{hk}", o * real(r"\partial_{k}s") * real(r"\partial_{h}s"))
    else:
        fixed = isinstance(start, SphereStart) and start.fixed_lengths
        yield from _lines_below_the_root(o, "v" if averages else "u", fixed)


def _lines_below_the_root(o: Any, outgoing: str, fixed_lengths: bool) -> Iterator[Equation | str]:
    """Rates of weights, and operators, of nodes of a latent below the root."""
    s, gradient, rho = real("s"), sp.Symbol(r"{\nabla s}", real=True), real(r"{\rho_{0\mu}}")
    drift = o * rho * dot(real(outgoing), real("Delta")) * gradient
    if fixed_lengths:
        w = real("w")
        yield Equation(real("X"), drift)
        yield Equation(rate_of("w"), real("X") - w * dot(w, real("X")) / dot(w, w))
    else:
        yield Equation(rate_of("w"), drift)
        yield Equation(rate_of(outgoing), o * rho * s * real("Delta"))
    yield r"Operators, of the weights $h$ and $k$ of two nodes of a latent, and of the root for each output, are"
    both = dot(real("u"), real("{u'}"))
    yield Equation(r"O_{hk}", o * rho**2 * both * real(r"\partial_{h}s") * real(r"\partial_{k}s'"))
    yield Equation(r"O_{hk}", o * real("a_h") * real("a_k"))
    yield r"with $a = \rho_{0\mu} s_{\mu}$ of all nodes that feed the root."


def _selectivity(problem: Problem, mu: int, table: Table) -> Any:
    """Selectivity of a node of the lowest latent mu as a function of its weights."""
    shape = problem.shape
    children = shape.children[0]
    w = [real(f"w_{number + 1}") for number in range(children)]
    bias = real("b") if problem.network.bias else 0
    if problem.data is not None:
        d = table.known("d", "data.sites", problem.data.sites)
        values, chances = (
            [0, 1],
            {pattern: (1 if sum(pattern) == 1 else -1) / (2 * d) for pattern in product((0, 1), repeat=2)},
        )
    else:
        values = [rounded(x) for x in problem.tree.inputs[:, 0]]
        edges = []
        for child in range(children):
            leaf = mu * children + child
            rho = float(problem.tree.polarities[0][leaf])
            edges.append(table.known(f"rho_{leaf + 1}", f"tree.polarity[{shape.depth - 1}][{leaf}]", rho, False))
        chances = {}
        for pattern in product((0, 1), repeat=children):
            given = [
                sp.prod((1 + (1 if value == z else -1) * rho) / 2 for value, rho in zip(pattern, edges, strict=True))
                for z in (0, 1)
            ]
            chances[pattern] = sp.expand((given[1] - given[0]) / 2)
    found = sp.S.Zero
    for pattern, chance in chances.items():
        field = sum(values[value] * weight for value, weight in zip(pattern, w, strict=True)) + bias
        linear = problem.data is None and shape.depth == 1
        found += chance * (field if linear else sp.Max(field, 0))
    return sp.expand(found) if problem.data is None and shape.depth == 1 else found
