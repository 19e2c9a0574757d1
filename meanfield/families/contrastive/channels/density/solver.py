"""The density of several channels: of two on cells, or by formula under a linear prior, and of more by particles."""

from __future__ import annotations

import numpy as np

from meanfield.families.contrastive.channels.in_time import ChannelsInTime
from meanfield.families.contrastive.channels.limit import joint_limit_of
from meanfield.families.contrastive.channels.trajectory import averages_along, trajectory_of_channels
from meanfield.families.contrastive.initial_state import with_errors_of_start
from meanfield.families.contrastive.results import KINDS
from meanfield.mckean_vlasov.declarations import ODE_ACCURACY
from meanfield.mckean_vlasov.density.settings import FIXED_KEYS
from meanfield.results.solved import Solved
from meanfield.several_vectors.declarations import OF_BOTH_WEIGHTS
from meanfield.several_vectors.densities import Solution, gaussian_densities, settings_of, solve_on_cells
from meanfield.several_vectors.limit import JointLimit
from meanfield.several_vectors.particle_search import effort_of, particle_arrays, search_particles
from meanfield.several_vectors.sample import RUNS
from meanfield.typing import FloatArray


def solve_plane(closure: ChannelsInTime) -> tuple[Solved, Solved]:
    """Density of the weights of two channels by finite volumes, or by formula where it is Gaussian.

    Parameters
    ----------
    closure : ChannelsInTime
        Of a problem of two channels with a start that is not random.

    Returns
    -------
    density : Solved
        `q`, `M`, `r`, the second moments `norm`, the total probability `mass`; `P` and `P_w`, densities of each
        weight, `P_sum` and `P_difference`, those of (w_1 +- w_2)/sqrt(2); `P_gain`, `D` and `Lambda`. With a tolerance
        also `q_error`, `M_error`, `r_error`, `P_error` and, of finite volumes, `F_error`.
    joint : Solved
        Of the kind `joint_density`: `P_joint` and `P_joint_given_u`, densities of both weights at some times.

    Raises
    ------
    DegenerateError
        If the prior is not linear and the channels have no density in the plane, at the start or later.
    InputError
        If the solution needs more memory than is free.

    Notes
    -----
    Cells move with the weights: w = mu_u + S x with the mean mu_u at each node and the common covariance S S^T.
    There a Gaussian law is at rest, however fast overlaps change and however narrow laws become, so that cells are
    few and what they have to resolve is what the prior does. Under linear priors the law stays Gaussian, and the
    overlaps give it; with `density.scheme = "finite_volumes"`, or given cells or steps, cells solve it
    independently of them. Fluxes are those of Scharfetter and Gummel along the lattice directions of the noise.
    Source: several_channels.md, section 5.
    """
    problem = closure.problem
    settings = problem.density
    free = settings.scheme == "automatic" and all(getattr(settings, key) is None for key in FIXED_KEYS)
    solve = _gaussian if free and all(prior.functions.linear for prior in closure.priors) else _by_finite_volumes
    arrays, status, effort = solve(closure)
    alone = {name: array for name, array in arrays.items() if name not in OF_BOTH_WEIGHTS}
    together = {name: arrays[name] for name in KINDS["joint_density"].variables}
    return Solved("density", alone, status, effort=effort), Solved("joint_density", together, status, effort=effort)


def _gaussian(closure: ChannelsInTime) -> Solution:
    """Density by the overlaps alone."""
    problem = closure.problem
    found, status = trajectory_of_channels(closure)
    q, M = found["q"], found["M"]
    densities = gaussian_densities(joint_limit_of(closure), q, M, problem.density.feature_nodes)
    between = densities.pop("P_error")
    known = np.where(np.isfinite(q).all(axis=(1, 2)), 1.0, np.nan)
    priors = [closure.largest_at(time).problem.prior for time in problem.time.outputs_at]
    r = np.array([prior.force(np.ones(1)) for prior in priors])
    arrays = found | densities
    arrays |= {"r": r * known[:, None] * np.ones(2), "norm": known[:, None] * np.ones(2), "mass": known}
    if status != "interrupted":
        arrays = _errors_of_overlaps(q, M) | arrays
        arrays |= {"r_error": np.zeros((len(q), 2)), "P_error": between + ODE_ACCURACY}
    return Solution(arrays, status, {"scheme": "gaussian", "nodes": len(densities["u"])})


def _errors_of_overlaps(q: FloatArray, M: FloatArray) -> dict[str, FloatArray]:
    """Errors of overlaps where trajectories state no others."""
    pairs = 1.0 - np.eye(2)
    return {"q_error": np.full(q.shape, ODE_ACCURACY), "M_error": np.broadcast_to(ODE_ACCURACY * pairs, M.shape).copy()}


def _by_finite_volumes(closure: ChannelsInTime) -> Solution:
    problem = closure.problem
    found = solve_on_cells(joint_limit_of(closure, in_plane=True), settings_of(problem.density))
    arrays = found.arrays | averages_along(closure, found.arrays["q"], found.arrays["M"])
    return found._replace(arrays=with_errors_of_start(problem, arrays) if "q_error" in arrays else arrays)


def solve_particles(closure: ChannelsInTime, tolerance: float) -> Solved:
    """Overlaps q, M and prior work r of several channels by interacting particles, with their errors.

    Parameters
    ----------
    closure : ChannelsInTime
        Of a problem of several channels and a start that is not random, with any prior.
    tolerance : float
        Error allowed in q and M at every output time; the numbers of particles and steps follow from it.

    Returns
    -------
    Solved
        `q`, `M` and `r`, means over 8 independent runs; `q_error`, `M_error` and `r_error`; `P_gain`, `D` and `Lambda`
        at the mean overlaps; `w_sample` and `u_sample`, weights of all channels and features at one coordinate for
        some particles of all runs, at the times of `particles.snapshots`. The attribute `status` is `complete`,
        `interrupted` or `failed: ...`; output times that were not reached are NaN. A tolerance that was missed is a
        failure, with all output times and the errors there are.

    Notes
    -----
    See `search_particles` for the errors. All quantities are dimensionless. Source: several_channels.md, section 5.
    """
    limits = limits_of_runs(closure)
    found = search_particles(limits, tolerance, compared_with(closure))
    arrays = particle_arrays(limits[0], found)
    arrays |= averages_along(closure, arrays["q"], arrays["M"])
    arrays = with_errors_of_start(closure.problem, arrays)
    return Solved("limit_particles", arrays, found.status, effort=effort_of(limits[0], found))


def limits_of_runs(closure: ChannelsInTime) -> list[JointLimit]:
    """Limits of each of the independent runs of particles."""
    return [joint_limit_of(each) for each in closure.runs] if closure.at_random else [joint_limit_of(closure)] * RUNS


def compared_with(closure: ChannelsInTime) -> JointLimit | None:
    """Limit of the first run by another quadrature, where averages are not accurate to rounding."""
    first = (closure.runs if closure.at_random else [closure])[0]
    return None if first.compared is None else joint_limit_of(first.compared)
