"""Density of the components of the student's weights along eigenvectors of F F^T/N.

A component moves linearly in itself and in those of the teacher and of the means, and adds up many small steps. So
given the eigenvalue and the teacher's components it is Gaussian, with a mean that is linear in the latter.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from meanfield.families.hidden_manifold.order_parameters.system import State, System
from meanfield.families.hidden_manifold.order_parameters.trajectory import check_trajectory, refined
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.results import KINDS
from meanfield.mckean_vlasov.cells import cell_arrays
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

CELLS = 240
"""Number of cells in w, even, so that w = 0 is an edge."""


@solver
def solve_density(problem: Problem) -> Solved:
    """Density of the student's weights along eigenvectors, from the order parameters.

    Parameters
    ----------
    problem : Problem
        Problem whose inputs have no mean of length sqrt(N).

    Returns
    -------
    xarray.Dataset
        Order parameters with their errors as of `solve_order_parameters`; `P`, the density of a student's weights
        given the eigenvalue, for teachers with Gaussian components, and `P_w`, its average over the spectrum;
        `regression` and `spread`, mean and standard deviation given also the teacher's components, whatever their law.

    Raises
    ------
    InputError
        If the inputs have a mean of length sqrt(N).

    Notes
    -----
    Source: hidden_manifold.md, section 6. Components S of the weights W are W F^T/sqrt(N) in the eigenbasis.
    """
    check_trajectory(problem)
    system, path, found, warning = refined(problem, problem.time.outputs_at)
    regression, spread = conditional_law(system, path.state)
    known = {"time": problem.time.outputs_at, "rho": system.rho, "rho_weight": system.weight}
    known |= {name: values for name, values in found.items() if name in KINDS["density"].names}
    arrays = known | _densities(path.state.sigma, system) | {"regression": regression, "spread": spread}
    return Solved("density", arrays, path.status, warning, {"nodes": len(system.rho)})


def conditional_law(system: System, state: State) -> tuple[FloatArray, FloatArray]:
    """Coefficients of the mean on the teacher's components, and standard deviations, at each node."""
    M = system.teachers
    r, t = state.r[..., :M], system.t[:, :M, :M]
    regression = r @ np.linalg.pinv(t, hermitian=True)
    variance = np.einsum("...kk->...k", state.sigma - regression @ r.swapaxes(-1, -2))
    return regression, np.sqrt(np.maximum(variance, 0.0))


def _densities(sigma: FloatArray, system: System) -> dict[str, FloatArray]:
    """Densities given the eigenvalue and averaged over the spectrum, as averages over cells."""
    deviation = np.sqrt(np.maximum(np.einsum("tnkk->tkn", sigma), 0.0))
    largest = max(float(np.nanmax(deviation)), np.finfo(float).tiny)
    # 2e-9 of the probability lies beyond 6 of the largest standard deviations.
    edges = np.linspace(-6.0, 6.0, CELLS + 1) * largest
    with np.errstate(divide="ignore", invalid="ignore"):
        F = ndtr(edges / deviation[..., None])
    F[..., CELLS // 2] = np.where(np.isnan(deviation), np.nan, 0.5)  # also of weights that are all 0
    P = np.diff(F) / np.diff(edges)
    return cell_arrays(edges) | {"P": P, "P_w": np.einsum("n,tknw->tkw", system.weight, P)}
