"""Nodes with any number of weights: samples of the start, which stand for all nodes and are followed exactly.

Samples are random turns of points that cover the sphere evenly, so that their averages have errors which fall faster
than with the root of their number, and spread over independent runs by as much.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import ndtri

from meanfield.families.latent_tree.many_nodes.carried import Carried, Nodes
from meanfield.families.latent_tree.many_nodes.carried_density import change_by
from meanfield.families.latent_tree.many_nodes.driven import advance, has_inner_time
from meanfield.families.latent_tree.many_nodes.latents import (
    SIGNS,
    Density,
    distribution_of,
    parts_of,
    projection_coordinates,
)
from meanfield.families.latent_tree.problem import Problem
from meanfield.numerics.refinement import largest_of_times, missed
from meanfield.typing import FloatArray

RUNS = 8
"""Number of independent runs, from whose spread standard errors follow."""

FEWEST, MOST = 7, 14
"""Numbers of nodes of each latent in a run, first and last, as powers of 2."""

SHOWN = 128
"""Number of nodes of each latent whose weights are in the result."""


def carried_sample(problem: Problem, power: int, run: int) -> Carried:
    """Nodes of one run, 2^power of each latent and sign."""
    from scipy.stats import qmc  # takes half a second, and explanations of other densities do without it

    parts = parts_of(problem)
    weights = parts[0].shape[1]
    seeds = np.random.SeedSequence([problem.particles.seed, run])
    points = qmc.Sobol(weights, rng=np.random.default_rng(seeds)).random_base2(power)
    w = ndtri(np.clip(points, 1e-300, 1.0 - 2.0**-53))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    share = np.full(len(w), 1.0 / len(w))
    return Carried(*parts, w, share, share)


def most_of(problem: Problem) -> int:
    """Power of 2 of the largest number of nodes whose distances from gates fit into memory."""
    nodes = carried_sample(problem, 0, 0)
    each = len(nodes.rows) * len(nodes.paths.gates.normal)
    # A run computes at most 2^24 distances from gates at once: 128 MB, and as much again a few times.
    return int(np.clip(np.floor(np.log2(2**24 / each)), FEWEST, MOST))


def by_particles(problem: Problem) -> Density:
    """Means over runs, as large as the tolerance asks for, with errors that chance exceeds once in 100 times."""
    tolerance = problem.density.tolerance
    power = FEWEST
    most = most_of(problem)
    driven = not has_inner_time(problem)
    while True:
        runs = [_run(problem, power, run) for run in range(RUNS)]
        statuses = [status for _, status in runs if status != "complete"]
        Delta = np.array([found["Delta"] for found, _ in runs])
        # Eight runs exceed 3.5 standard errors by chance once in 100 times (Student's t of 7 degrees).
        error = 3.5 * Delta.std(axis=0, ddof=1) / np.sqrt(RUNS)
        worst = change_by(error, Delta.mean(axis=0)).largest
        if worst <= tolerance or power == most or "interrupted" in statuses:
            break
        # Errors fall about with the power 1/1.5 of the number of nodes.
        power = min(power + int(np.clip(np.ceil(1.5 * np.log2(worst / tolerance)), 1, 3)), most)
    arrays = {name: np.mean([found[name] for found, _ in runs], axis=0) for name in runs[0][0] if name != "w_sample"}
    what = f"Delta with {2**power} nodes of each latent in each of {RUNS} runs"
    variance = np.var([found["projected"] for found, _ in runs], axis=0, ddof=1).mean(axis=(1, 2, 3, 4))
    errors = {"Delta_error": error, "projected_error": 3.5 * np.sqrt(variance / RUNS)}
    if driven and not statuses:
        errors["loss_error"] = 3.5 * np.std([found["loss"] for found, _ in runs], axis=0, ddof=1) / np.sqrt(RUNS)
        # Steps that are twice as long change a run by three times what it is off by, since they are of second order.
        long, _ = _run(problem, power, 0, 1.0)
        for name in ("Delta", "loss"):
            errors[f"{name}_error"] += largest_of_times(long[name] - runs[0][0][name])
    worst = change_by(errors["Delta_error"], arrays["Delta"]).largest
    warning = missed(what, worst, "density.tolerance", tolerance, "raise it, or lower time.stop")
    sample = runs[0][0]["w_sample"]
    arrays |= {"w_sample": sample} | errors | projection_coordinates(sample.shape[-1])
    return Density("node_particles", arrays, statuses[0] if statuses else "complete", warning)


def _run(problem: Problem, power: int, run: int, scale: float = 0.5) -> tuple[dict[str, FloatArray], str]:
    """Variables at the output times from one run, and the status."""
    nodes = carried_sample(problem, power, run)
    label = f"density, {2**power} particles, run {run + 1} of {RUNS}"
    return advance(problem, nodes, nodes.starting(nodes.w[:0]), scale, label, partial(_shown, nodes))


def _shown(nodes: Carried, places: Nodes, others: Nodes) -> dict[str, FloatArray]:
    """Weights of some nodes; NaN for signs that no node has."""
    rows = len(nodes.polarity) * len(SIGNS)
    shares = [distribution_of(w, nodes.weight) for w in np.split(places.w, len(nodes.rows))]
    projected = np.zeros((rows, *shares[0].shape))
    projected[nodes.rows] = shares
    found = np.full((rows, SHOWN, nodes.inputs.shape[1]), np.nan)
    length = np.exp(places.growth) if nodes.grows else np.ones(len(places.w))
    w = (length[:, None] * places.w).reshape(len(nodes.rows), -1, nodes.inputs.shape[1])
    found[nodes.rows] = w[:, :SHOWN]
    shown = {"w_sample": found, "projected": projected}
    return {name: values.reshape(-1, len(SIGNS), *values.shape[1:]) for name, values in shown.items()}
