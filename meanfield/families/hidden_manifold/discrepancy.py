"""How far latents are from N(0, 1), and SGD from its order parameters: the measures of Bae and Jeong (2024)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.polynomial.legendre import leggauss

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.order_parameters.start_from_run import solve_start, start_of_run
from meanfield.families.hidden_manifold.particles.features import latent_dimension
from meanfield.families.hidden_manifold.particles.latents import mixture_of
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.problems.base import check_problem
from meanfield.problems.problem_keys import with_values
from meanfield.results.result import Result, check_dataset
from meanfield.typing import FloatArray

MEASURED = ("Q", "R", "v")
"""Order parameters whose discrepancies are taken."""


def latent_divergence(problem: Problem) -> float:
    """Kullback-Leibler divergence of the law of a single latent from N(0, 1).

    Parameters
    ----------
    problem : Problem
        Of the family `hidden_manifold`; `inputs.standardise` counts.

    Returns
    -------
    float
        KL(P, N(0, 1)) in nats; where each latent has means of its own, the mean over the D latents of
        `particles.dimension`. Components along the teacher, of length O(1), do not change a single latent. That of
        values in a file, which have no density, is infinite.

    Raises
    ------
    InputError
        If the problem is of another family.

    Notes
    -----
    By Gauss-Legendre panels. Source: Bae and Jeong (2024), equation (16).
    """
    check_problem(problem, Problem)
    if problem.inputs.latents is not None:
        return np.inf
    drawn = problem.inputs.random_means
    D = latent_dimension(problem) if drawn is not None and drawn.each == "latent" else 1
    mixture = mixture_of(problem, np.zeros((len(problem.inputs.mixture), D)))
    chance = np.diff(np.append(0.0, np.minimum(mixture.cumulated, 1.0)))
    each = [
        mixture_divergence(chance, mean, scale) for mean, scale in zip(mixture.mean.T, mixture.scale.T, strict=True)
    ]
    return float(np.mean(each))


def mixture_divergence(chance: FloatArray, mean: FloatArray, scale: FloatArray) -> float:
    """KL(P, N(0, 1)) of a mixture of N(mean, scale^2) on a line; arguments of shape (components,)."""
    reach = 9.0 * scale  # beyond 9 standard deviations there is no probability to the accuracy of numbers
    # Edges that are dense around every component: between them 16 nodes resolve a quarter of its width.
    grid = np.arange(-36, 37) / 4.0
    edges = np.unique(np.concatenate([mean[:, None] + np.outer(scale, grid), [mean - reach, mean + reach]], axis=None))
    nodes, weights = leggauss(16)
    half = 0.5 * np.diff(edges)[:, None]
    x = 0.5 * (edges[1:] + edges[:-1])[:, None] + half * nodes
    exponents = -0.5 * ((x[..., None] - mean) / scale) ** 2 + np.log(chance / scale)
    largest = exponents.max(axis=-1)
    log_density = largest + np.log(np.exp(exponents - largest[..., None]).sum(axis=-1))
    density = np.exp(log_density) / np.sqrt(2.0 * np.pi)
    return float((half * weights * density * (log_density + 0.5 * x**2)).sum())


def log_rmse(run: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Root mean square over output times of what Q, R and v of SGD differ by from a prediction.

    Parameters
    ----------
    run : xarray.Dataset
        SGD, from `meanfield.simulate_sgd`.
    theory : xarray.Dataset
        With the same output times, such as `meanfield.solve_order_parameters` or `solve_from_run` return.

    Returns
    -------
    xarray.Dataset
        `Q_rmse`, `R_rmse` and `v_rmse` for each replica and entry. Times with `time.spacing = "log"` make it the
        paper's tLog-RMSE; the start counts as one of them.

    Raises
    ------
    InputError
        If output times differ, or one of the results lacks Q, R or v.

    Notes
    -----
    Source: Bae and Jeong (2024), equation (18) as it must be meant: the root of the mean square of differences.
    """
    for name, dataset in (("run", run), ("theory", theory)):
        check_dataset(dataset)
        lacking = [variable for variable in MEASURED if variable not in dataset]
        if lacking:
            raise InputError(f"{name}: holds no {', '.join(lacking)}; give replicas of SGD, and order parameters")
    if run.sizes["time"] != theory.sizes["time"] or not np.allclose(run["time"], theory["time"]):
        raise InputError("theory: has other output times than run; solve both for one problem")
    times = theory["time"].values
    found = {name: ((run[name].assign_coords(time=times) - theory[name]) ** 2).mean("time") ** 0.5 for name in MEASURED}
    return xr.Dataset({f"{name}_rmse": values for name, values in found.items()})


def discrepancy(run: xr.Dataset) -> dict[str, xr.Variable]:
    """What a sweep keeps of SGD: the divergence of latents, and how far replicas are from the ODEs of their own start.

    Parameters
    ----------
    run : xarray.Dataset
        From `meanfield.simulate_sgd`, with weights at t = 0 (`particles.snapshots = [0.0]`).

    Returns
    -------
    dict
        `latent_divergence` before any standardisation, and `Q_discrepancy`, `R_discrepancy` and `v_discrepancy`, means
        of `log_rmse` over replicas and entries, with their standard errors over replicas.

    Notes
    -----
    The ODEs are those of standard Gaussian latents, whatever the latents are: the comparison of the paper.
    """
    problem = Result.of(run).problem
    own: dict[str, Any] = {"inputs.components": [], "inputs.random_means": None, "inputs.latents": None}
    own["inputs.standardise"] = "nothing"
    conventional = with_values(problem, own | {"inputs.centered": True})
    each = []
    for replica in range(run.sizes["replica"]):
        start = start_of_run(problem, run, replica)
        theory = solve_start(conventional, start, problem.particles.dimension)
        each.append(log_rmse(run.isel(replica=[replica]), theory))
    given = with_values(problem, {"inputs.standardise": "nothing", "inputs.centered": False})
    found = {"latent_divergence": xr.Variable((), latent_divergence(given))}
    for name, values in xr.concat(each, "replica").items():
        means = values.mean([dim for dim in values.dims if dim != "replica"])
        error = float(means.std(ddof=1)) / np.sqrt(len(each)) if len(each) > 1 else np.nan
        key = str(name).replace("rmse", "discrepancy")
        found |= {key: xr.Variable((), float(means.mean())), f"{key}_error": xr.Variable((), error)}
    return found
