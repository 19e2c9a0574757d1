"""Theorem 6 of the paper: how much the mean activations of a latent's children vary with the root.

Exactly, by the enumeration of all leaves of random trees of depth 3 with random weights, for every latent and for
roots with P(z_0 = 1) = 0.5 and 0.7: the one eigenvalue of the covariance that is not 0, against o |a|^2 with the o that
is printed, rho^2 (1 - rho^2), and with rho^2 (1 - rho_0^2), as the proof has it. rho is the polarity between the latent
and the root, and 1 at the root, so that a root would never learn by the printed formula. To the right, the covariance
operator of each latent against that of theorem 6 with the Jacobian replaced by its mean: theorem 6 needs it constant.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.operators import operators
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.shape import Shape
from meanfield.plotting import COLOURS, MARKERS
from validation.latent_tree.figures.trees import law_of_leaves, unnormalised
from validation.study import Statement, Study

DEPTH, NODES, TREES = 3, 4, 12
ONES = (0.5, 0.7)
"""Chances of the value 1 of the root."""


def problem_of(one: float, seed: int) -> Problem:
    """A random tree and network."""
    data: dict[str, Any] = {
        "tree": {"depth": DEPTH, "root": [1.0 - one, one], "polarity": {"law": "uniform", "low": 0.5, "seed": seed}},
        "network": {
            "nodes_per_latent": NODES,
            "initial": {"law": "uniform", "seed": seed},
        },
        "time": {"stop": 1.0},
    }
    return Problem.model_validate(data)


def from_the_root(problem: Problem) -> np.ndarray:
    """Polarity between the root and each latent, the root first."""
    found = [np.ones(1)]
    for level in range(problem.shape.depth - 1, 0, -1):
        found.append(np.repeat(found[-1], problem.shape.children[level]) * problem.tree.polarities[level])
    return np.concatenate(found)


def children_of(shape: Shape, level: int, place: int) -> range:
    """Places of the children of a latent at a level among all of the level below."""
    count = shape.children[level - 1]
    return range(place * count, (place + 1) * count)


def vector_a(problem: Problem, selectivity: np.ndarray, level: int, place: int) -> np.ndarray:
    """Vector a of a latent: selectivities of its children's nodes times their polarities."""
    shape, rho = problem.shape, problem.tree.polarities[level - 1]
    if level == 1:
        low, high = problem.tree.leaves
        return np.array([rho[child] * 0.5 * (high - low) for child in children_of(shape, level, place)])
    first = sum(shape.latents[level:])  # latents with a network above the children's level
    return np.concatenate([rho[child] * selectivity[first + child] for child in children_of(shape, level, place)])


def of_tree(one: float, seed: int) -> np.ndarray:
    """For each latent: exact, printed and corrected variance; norms of OP, of its approximation, and of the gap."""
    problem = problem_of(one, seed)
    tables, weights = unnormalised(problem), problem.initial_weights
    found = tables.forward(weights)
    selectivity = tables.moments(found).selectivity
    exact = operators(tables, found, tables.evaluate(found))
    P, p = law_of_leaves(tables), np.array(problem.tree.root)
    leaves = np.indices((2,) * problem.shape.latents[0]).reshape(problem.shape.latents[0], -1).T
    activity = network.forward(weights, leaves.astype(float))
    unit = np.broadcast_to(np.eye(NODES)[:, None, :], (NODES, len(leaves), NODES))
    signals = network.signals(weights, activity, unit)
    rows, rho, shape = [], from_the_root(problem), problem.shape
    for latent, level in enumerate(shape.level_of):
        place = latent - sum(shape.latents[level + 1 :])
        difference = np.diff(P @ activity.inputs[level - 1][place], axis=0)[0]
        a = vector_a(problem, selectivity, level, place)
        root = p[1] - p[0]
        J = np.einsum("c,ocn->no", p @ P, signals[level - 1][:, place])  # mean, shape (nodes, outputs)
        K = np.einsum("no,i->nio", J, difference).reshape(-1, NODES)
        constant = p.prod() * K @ K.T
        matrix = exact[latent].matrix
        sizes = [np.linalg.norm(each) for each in (matrix, constant, matrix - constant)]
        square, size = rho[latent] ** 2, float(a @ a)
        rows.append(
            [p.prod() * difference @ difference, square * (1 - square) * size, square * (1 - root**2) * size, *sizes]
        )
    return np.array(rows)


def theory() -> xr.Dataset:
    """All latents of all trees."""
    values = np.array([[of_tree(one, seed) for seed in range(TREES)] for one in ONES])
    names = ("variance", "printed", "corrected", "operator", "constant", "difference")
    over = ("one", "tree", "latent")
    level = problem_of(0.5, 0).shape.level_of
    return xr.Dataset(
        {name: (over, values[..., k]) for k, name in enumerate(names)}, {"one": list(ONES), "level": ("latent", level)}
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Which formula holds."""
    off = abs(numbers.corrected / numbers.variance - 1.0)
    printed = numbers.printed / numbers.variance
    below, found = numbers.isel(latent=numbers.level < DEPTH), []
    for text, source, holds, number in (
        (
            "o = rho^2 (1 - rho^2)",
            "paper, theorem 6",
            bool((abs(printed - 1.0) < 1e-9).all()),
            f"{float(printed.isel(latent=0).max()):g} times the variance at the root, "
            f"{float(printed[..., 1:].min()):.2f} to {float(printed[..., 1:].max()):.2f} times below it",
        ),
        (
            "o = rho^2 (1 - rho_0^2)",
            "errata, theorem 6",
            bool((off < 1e-9).all()),
            f"off by {float(off.max()):.1g} of the variance at most",
        ),
    ):
        found.append(Statement(text, source, holds, number))
    error = below.difference / below.operator
    by_level = {level: float(error.isel(latent=below.level == level).median()) for level in range(DEPTH - 1, 0, -1)}
    found.append(
        Statement(
            "OP = o a a^T x J^T J, with a constant Jacobian",
            "paper, section 6.1.2",
            False if min(by_level.values()) > 0.1 else None,
            f"off by {', '.join(f'{size:.0%} of |OP| at level {level}' for level, size in by_level.items())} in the "
            "median with the mean of J; exact at the root",
        )
    )
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Formulas against what they are for."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.9), layout="constrained")
    flat = numbers.stack(point=("one", "tree", "latent"))
    ends = np.array([float(flat.variance.min()) / 2, float(flat.variance.max()) * 2])
    left.plot(ends, ends, color="0.6", lw=0.8)
    for place, (name, label) in enumerate(
        {"printed": r"printed, $\rho^2(1-\rho^2)$", "corrected": r"corrected, $\rho^2(1-\rho_0^2)$"}.items()
    ):
        style = {"color": COLOURS[1 - place], "marker": MARKERS[place], "ls": "none", "ms": 4, "mfc": "none"}
        left.plot(flat.variance, flat[name].where(flat[name] > 0), label=label, **style)
    left.set(xscale="log", yscale="log", xlabel=r"variance explained by the root, exactly", ylabel=r"$o\,|a|^2$")
    left.set_title("mean activations of children", fontsize=10)
    for place, level in enumerate(range(DEPTH, 0, -1)):
        some = numbers.isel(latent=numbers.level == level).stack(point=("one", "tree", "latent"))
        style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "ms": 4, "mfc": "none"}
        right.plot(
            some.operator, some.constant, label=f"level {level}" + (" (root)" if level == DEPTH else ""), **style
        )
    ends = np.array([float(numbers.operator.min()) / 2, float(numbers.operator.max()) * 2])
    right.plot(ends, ends, color="0.6", lw=0.8)
    right.set(xscale="log", yscale="log", xlabel="|OP|, exactly", ylabel="|OP| with the mean Jacobian")
    right.set_title("covariance operators", fontsize=10)
    for axes in (left, right):
        axes.legend(frameon=False)
    return figure


STUDY = Study(theory, judge, draw)
