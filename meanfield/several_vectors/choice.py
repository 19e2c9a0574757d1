"""Which scheme solves the density of several vectors: cells where they serve, and why not where they do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from meanfield.errors import InputError
from meanfield.mckean_vlasov.density.settings import LEAST_PARTICLE_TOLERANCE, PARTICLE_TOLERANCE, DensitySettings
from meanfield.problems.problem_keys import with_value
from meanfield.results.solved import Solved
from meanfield.several_vectors.evolution import DegenerateError


def solved_by_scheme(
    problem: Any,
    settings: DensitySettings,
    why_no_cells: Callable[[], str],
    on_cells: Callable[[], Solved],
    by_particles: Callable[[float], Solved],
) -> Solved:
    """Density by the scheme of the settings; 'automatic' takes cells unless particles must be.

    Parameters
    ----------
    problem : Problem
    settings : DensitySettings
        Those of the problem.
    why_no_cells : callable
        Why cells do not serve, known before a run; empty where they do.
    on_cells : callable
    by_particles : callable
        From a tolerance.

    Returns
    -------
    Solved
        Where 'automatic' takes particles, the attribute `warning` says why.

    Raises
    ------
    InputError
        If cells are asked for, and weights have no density in the plane.
    """
    scheme = settings.scheme
    if scheme == "particles":
        return by_particles(settings.tolerance or PARTICLE_TOLERANCE)
    reason = why_no_cells() if scheme == "automatic" else ""
    if not reason:
        try:
            return on_cells()
        except DegenerateError as error:
            reason = error.reason
            if scheme != "automatic":
                raise InputError(f"density.scheme = '{scheme}': {error}") from error
    tolerance = max(settings.tolerance or PARTICLE_TOLERANCE, LEAST_PARTICLE_TOLERANCE)
    solved = with_value(problem, "density", DensitySettings(scheme="particles", tolerance=tolerance))
    warning = f"The density was solved by interacting particles, because {reason}."
    return replace(by_particles(tolerance), warning=warning, problem=solved)
