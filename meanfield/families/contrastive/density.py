"""The density of a contrastive problem as a Dataset."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from meanfield.errors import InputError
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.problem import Problem, check_no_velocity
from meanfield.mckean_vlasov.density.solver import MOST_FEATURES, check_backend, density_of
from meanfield.problems.base import check_problem
from meanfield.results.solved import Solved, solver

if TYPE_CHECKING:
    import xarray as xr


@solver
def solve_density(problem: Problem, backend: str = "numba") -> Solved:
    """Density of weights and features from the Fokker-Planck equation, with self-consistent q and r.

    Parameters
    ----------
    problem : Problem
        Problem with one to three features and a start that is not random.
    backend : {"numba", "fipy"}
        Our kernel, or the same scheme in FiPy as a reference (slow).

    Returns
    -------
    xarray.Dataset
        `q`, `r`, `P`, `P_w`, `u`, `u_weight`, `w`, `w_bnds`, `mass`, `norm`, `g`, `Lambda` as
        `meanfield.families.contrastive.results` describes them. P and P_w hold averages over cells. With a tolerance
        also `q_error`, `r_error` and `P_error`, estimates. The attribute `status` is `complete`, `interrupted` or
        `failed: ...`; output times that were not reached are NaN. A tolerance that was missed is a failure, with all
        output times and the errors there are. Where the norm goes to ever fewer weights, `critical_weight`,
        `runaway_weights` and `runaway_norm` say which, and the attribute `warning` says so in words.

    Raises
    ------
    InputError
        If the problem has more than three features or a random start, needs more memory than is free, or an unknown
        backend is asked for.

    Notes
    -----
    Several channels: `meanfield.families.contrastive.channels.density.choice.solve_several`. What follows is about one.

    `density.tolerance` is the error allowed in q and r at every output time; half-width, cells, nodes and steps follow
    from it; more nodes are taken where the density of w alone needs them. With `density.cells`, `density.steps` or
    `density.order` they are fixed instead, and nothing is estimated.
    `meanfield.mckean_vlasov.density.solver.solve` describes the scheme. All quantities are dimensionless. Source:
    theory.md, section 2.
    """
    check_density(problem, backend)
    if problem.model.channels > 1:
        from meanfield.families.contrastive.channels.density.choice import solve_several  # imported where it is used

        return solve_several(problem)
    return density_of(limit_of(problem), problem.density, problem.particles.dimension, backend)


def solve_joint_density(problem: Problem) -> tuple[xr.Dataset, xr.Dataset]:
    """Density of two channels, and that of both weights together at some of its times.

    Parameters
    ----------
    problem : Problem
        Problem of two channels, with one or two features and a start that is not random.

    Returns
    -------
    density : xarray.Dataset
        As `solve_density` returns it.
    joint : xarray.Dataset
        `P_joint`, the density of w_1 and w_2 averaged over cells, shape (density_time, w1, w2), and `P_joint_given_u`,
        the same at each node in u. All quantities are dimensionless.

    Raises
    ------
    InputError
        If there are not two channels, or `solve_density` refuses the problem or takes particles of the limit for it.

    Notes
    -----
    It takes no longer than the density alone. There are two results because in a table of both each cell of one weight
    would stand beside each cell of both. Source: several_channels.md, section 5.
    """
    check_density(problem)
    if problem.model.channels == 1:
        raise InputError("model.channels = 1: a joint density is one of weights of two channels; take solve_density")
    from meanfield.families.contrastive.channels.density.choice import solve_joint  # imported where it is used

    started = perf_counter()
    alone, joint = solve_joint(problem)
    seconds = perf_counter() - started
    return alone.dataset(problem, seconds), joint.dataset(problem, seconds)


def check_density(problem: Problem, backend: str = "numba") -> None:
    """Refuse problems whose density cannot be computed; see `solve_density`."""
    check_problem(problem, Problem)
    check_no_velocity(problem)
    check_backend(backend)
    if problem.model.channels == 1:
        _check_one(problem)
    else:
        from meanfield.families.contrastive.channels.density.choice import check_several  # imported where it is used

        check_several(problem, backend)
    if problem.random_start:
        raise InputError(
            "features.initial_overlap = 'random': the density needs a known overlap, because a random one "
            "stays at q = 0 in the limit; give a number, or use SGD"
        )


def _check_one(problem: Problem) -> None:
    if problem.density.scheme not in ("lagrangian", "eulerian"):
        raise InputError(
            f"density.scheme = '{problem.density.scheme}' with model.channels = 1: it is for several channels; take "
            "'lagrangian' or 'eulerian', or leave the key out"
        )
    if len(problem.features) > MOST_FEATURES:
        raise InputError(
            f"features: {len(problem.features)} of them, but the density is solved for one to {MOST_FEATURES}; "
            "remove features, or use the order parameters or SGD"
        )
