"""How much runs of SGD differ: fluctuations by learning rate, batch size and number of nodes.

Left, the standard deviation of the population loss over runs from the same weights, on a tree of depth 2 with 2 nodes
per latent, in units of sqrt(learning rate/batch size): the line is the linear theory, dC/dt = J C + C J^T + Sigma about
the gradient flow, where Sigma is the covariance of the gradient of one triple by the enumeration of all triples. Right,
the same for the output gap Delta of networks with n nodes on the circle for each of two latents, with v = 1 and a step
scaled by n: nodes share the samples of a batch, so that their noise does not average out as n grows. Bars are three
standard errors.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.tables import Tables
from meanfield.families.latent_tree.weights import Weights
from meanfield.plotting import COLOURS, LINES, MARKERS
from validation.latent_tree.figures.trees import law_of_leaves
from validation.study import Statement, Study

STOP, OUTPUTS = 0.5, 11
CASES = ((0.02, 16), (0.02, 64), (0.005, 16), (0.005, 4))
"""Learning rates and batch sizes."""

REPLICAS = 600
STEP = 1e-6
"""Step of differences of the gradient."""

COUNTS = (40, 200, 1000)
"""Numbers of nodes per latent of networks on the circle."""

CIRCLE = (((0.9, 0.6), 0.8), ((0.8, 0.7), 0.5))
"""Polarities of the leaves of each latent, and of the latent."""

CIRCLE_STOP, CIRCLE_RATE, CIRCLE_BATCH = 2.0, 0.1, 32

WEIGHTS = [
    [[[0.9, -0.4], [0.5, 0.8]], [[-0.3, 0.7], [0.6, 0.2]]],
    [[[0.5, -0.6, 0.3, 0.4], [-0.2, 0.7, 0.6, -0.5]]],
]


def problem_of(rate: float, batch: int) -> Problem:
    """The reference problem of the theory page, whose weights become infinite at t = 1.277 only."""
    data: dict[str, Any] = {
        "tree": {"depth": 2, "root": [0.4, 0.6], "polarity": [[0.8, -0.5], [0.9, 0.8, 0.7, 0.6]]},
        "network": {
            "nodes_per_latent": 2,
            "initial": {"law": "explicit", "weights": WEIGHTS},
        },
        "training": {"learning_rate": rate, "batch_size": batch},
        "time": {"stop": STOP, "outputs": OUTPUTS},
        "particles": {"replicas": REPLICAS, "score_samples": 2},
    }
    return Problem.model_validate(data)


def of_one_triple(tables: Tables, weights: Weights) -> np.ndarray:
    """Covariance of the gradient of the simple loss of one triple, by enumeration."""
    problem = tables.problem
    leaves, normalisation = problem.shape.latents[0], problem.network.normalisation
    x = np.indices((2,) * leaves).reshape(leaves, -1).T.astype(float)
    P, p = law_of_leaves(tables), np.array(problem.tree.root)
    activity = network.forward(weights, x)
    y, rows = normalisation.value(activity.last), []
    for view in range(len(x)):
        for unit in np.eye(y.shape[1]):
            slope = np.zeros_like(y)
            slope[view] = unit
            rows.append(network.gradient(weights, activity, normalisation.back(activity.last, slope)).vector)
    jacobian = np.array(rows).reshape(*y.shape, -1)
    near, alone = np.einsum("z,zc,zd->cd", p, P, P), p @ P
    mean, square = np.zeros(jacobian.shape[-1]), np.zeros((jacobian.shape[-1],) * 2)
    for a, at in enumerate(y):
        for n, other in enumerate(y):
            by_anchor = (other - y) @ jacobian[a]  # a row for each positive
            by_positive = np.einsum("po,pow->pw", y - at, jacobian)
            g = by_anchor + by_positive + (at - other) @ jacobian[n]
            chance = near[a] * alone[n]
            mean += chance @ g
            square += g.T @ (chance[:, None] * g)
    return np.asarray(square - np.outer(mean, mean))


def theory() -> xr.Dataset:
    """Deviation of the loss in units of sqrt(learning rate/batch size), by small steps along the flow."""
    problem = problem_of(*CASES[0])
    tables, like, steps = Tables(problem), problem.initial_weights, 20
    dt = STOP / (OUTPUTS - 1) / steps
    w = like.vector
    C, found = np.zeros((len(w), len(w))), []
    for k in range((OUTPUTS - 1) * steps + 1):
        weights = like.like(w)
        _, gradient = tables.loss_and_gradient(weights)
        if k % steps == 0:
            found.append(np.sqrt(gradient.vector @ C @ gradient.vector))
        J = np.array([_slope(tables, like, w + STEP * e) - _slope(tables, like, w - STEP * e) for e in np.eye(len(w))])
        J /= 2.0 * STEP
        C = C + dt * (J @ C + C @ J.T + of_one_triple(tables, weights))
        w = w - dt * gradient.vector
    return xr.Dataset({"deviation": ("time", np.array(found))}, {"time": problem.time.outputs_at})


def _slope(tables: Tables, like: Weights, w: np.ndarray) -> np.ndarray:
    return np.asarray(-tables.loss_and_gradient(like.like(w))[1].vector)


def simulate() -> xr.Dataset:
    """Runs of SGD with each learning rate and batch size, and on the circle."""
    loss = [meanfield.solve(problem_of(*case), "particles").loss.values for case in CASES]
    unit = np.array([np.sqrt(rate / batch) for rate, batch in CASES])
    spread = np.std(loss, axis=1, ddof=1) / unit[:, None]
    circle = np.array([on_circle(count).std(ddof=1) for count in COUNTS]) / np.sqrt(CIRCLE_RATE / CIRCLE_BATCH)
    return xr.Dataset(
        {"sgd_deviation": (("case", "time"), spread), "sgd_circle": ("n", circle)},
        {"n": list(COUNTS), "rate": ("case", [c[0] for c in CASES]), "batch": ("case", [c[1] for c in CASES])},
    )


def on_circle(count: int) -> np.ndarray:
    """Delta after training with nodes on the circle, from the same evenly spaced angles, shape (replicas,)."""
    rng, x = np.random.default_rng(count), np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    law = np.empty((2, 2, 4))  # latents, root, configurations
    for m, (leaves, rho) in enumerate(CIRCLE):
        given = np.array([[np.prod([0.5 * (1 + r * (1 if c == z else -1)) for r, c in zip(leaves, row, strict=True)])
                           for row in x] for z in (0, 1)])  # fmt: skip
        law[m] = 0.5 * (1 + rho) * given + 0.5 * (1 - rho) * given[::-1]
    angle = np.tile(2 * np.pi * (np.arange(count) + 0.5) / count, (REPLICAS, 2, 1))
    for _ in range(round(CIRCLE_STOP / CIRCLE_RATE)):
        w = np.stack([np.cos(angle), np.sin(angle)])
        before = np.einsum("ir...,ci->r...c", w, x)
        f = np.maximum(before, 0.0).mean(axis=2)  # (replicas, latents, configurations)
        across = np.einsum("ir...,ci->r...c", np.stack([-w[1], w[0]]), x) * (before > 0.0)
        root = rng.integers(2, size=(REPLICAS, CIRCLE_BATCH))
        views = [root, root, rng.integers(2, size=root.shape)]
        place = np.stack(
            [[_draw(rng, law[m][z]) for m in (0, 1)] for z in views]
        )  # (views, latents, replicas, anchors)
        which = np.arange(REPLICAS)[:, None]
        y = np.stack([sum(f[which, m, place[k, m]] for m in (0, 1)) for k in range(3)])
        slope = np.stack([y[2] - y[1], y[1] - y[0], y[0] - y[2]]) / CIRCLE_BATCH
        pull = np.zeros((REPLICAS, 2, 4))
        for k, m in np.ndindex(3, 2):
            np.add.at(pull, (which, m, place[k, m]), slope[k])
        angle -= CIRCLE_RATE * np.einsum("rmc,rmnc->rmn", pull, across)
    w = np.stack([np.cos(angle), np.sin(angle)])
    f = np.maximum(np.einsum("ir...,ci->r...c", w, x), 0.0).mean(axis=2)
    return np.asarray(np.einsum("rmc,mc->r", f, law[:, 1] - law[:, 0]))


def _draw(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Numbers drawn with the probabilities in the last dim of rows."""
    return np.asarray((rng.random((*rows.shape[:-1], 1)) > rows.cumsum(axis=-1)[..., :-1]).sum(axis=-1))


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether deviations are those of the theory, and depend on the number of nodes."""
    if "sgd_deviation" not in numbers:
        return []
    error = 1.0 / np.sqrt(2 * (REPLICAS - 1))
    last = numbers.isel(time=-1)
    ratio = last.sgd_deviation / last.deviation
    circle = numbers.sgd_circle
    fall = float(circle.isel(n=-1) / circle.isel(n=0))
    alone = np.sqrt(COUNTS[0] / COUNTS[-1])
    listed = ", ".join(f"{float(r):.3f} ({float(r.rate):g}, {int(r.batch)})" for r in ratio.transpose("case"))
    return [
        Statement(
            "runs differ by sqrt(learning rate/batch size) times what the linear theory predicts",
            "ours",
            bool((abs(ratio - 1.0) < 0.05 + 3.5 * error).all()),
            f"{listed} times that at the end, with an error of {error:.3f}",
        ),
        Statement(
            "fluctuations do not decrease with the number of nodes",
            "ours",
            fall + 3.5 * error * np.sqrt(2) > 1.0 and fall > 2.0 * alone,
            f"{', '.join(f'{float(c):.3f}' for c in circle)} for n = {', '.join(map(str, COUNTS))}: {fall:.2f} times "
            f"from first to last, with an error of {error * np.sqrt(2):.2f}, where independent noise has {alone:.2f}",
        ),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Deviations in time, and by number of nodes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    left.plot(numbers.time, numbers.deviation, color="0.2", label="linear theory")
    error = 3.0 / np.sqrt(2 * (REPLICAS - 1))
    for place in range(numbers.sizes["case"]):
        one = numbers.isel(case=place)
        style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "ms": 4, "capsize": 2}
        label = rf"$\eta = {float(one.rate):g}$, $B = {int(one.batch)}$"
        left.errorbar(one.time, one.sgd_deviation, error * one.sgd_deviation, label=label, **style)
    left.set(xlabel="time", ylabel=r"deviation of the loss$\,/\sqrt{\eta/B}$", ylim=(0, None))
    circle = numbers.sgd_circle
    right.errorbar(circle.n, circle, error * circle, color=COLOURS[0], marker=MARKERS[0], ls=LINES[0], capsize=3)
    right.set(xscale="log", xlabel="nodes per latent $n$", ylabel=r"deviation of $\Delta\,/\sqrt{\eta/B}$")
    right.set_ylim(0.0, 1.5 * float(circle.max()))
    left.legend(frameon=False, fontsize=8)
    return figure


STUDY = Study(theory, judge, draw, simulate)
