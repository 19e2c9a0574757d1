"""Write data/reference/density_NAME.csv for the problems of `density_problems.py` and of `hard_problems.py`.

The former have q and r to about ten digits, with bounds from coarser solutions. The latter are solved by a second
scheme, too: their errors are the differences, and no file is written where these exceed `AGREEMENT`. Names as arguments
choose some problems; all together take half an hour or more.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import xarray as xr

import meanfield
from meanfield.cli import DONE, run
from meanfield.errors import InputError
from meanfield.extend import DensitySettings
from meanfield.families.contrastive.problem import Problem
from meanfield.problems.file import format_problem
from validation.references.density_problems import TEXTS, accuracy_problem, reference_path, resolution_of
from validation.references.hard_problems import AGREEMENT, HARD, LAGRANGIAN_TOLERANCE
from validation.references.spectral_elements import Reference, Resolution, estimated_errors, reference_solution

Array = np.ndarray
COMMAND = "validation.references.density_references"


def made_by(name: str, resolution: Resolution, reference: Reference) -> list[str]:
    """How the numbers were made."""
    norm, mass = (abs(x - 1).max() for x in (reference.norm, reference.mass))
    return [
        f"Solution of theory.md, section 2, by `python -m {COMMAND} {name}`: spectral elements.",
        f"{resolution}:",
        f"{reference.steps} time steps, {len(reference.u)} nodes in u, {reference.mesh.size} values in w for each.",
        f"E[w^2] is off by at most {norm:.1e}, the mass by {mass:.1e}.",
    ]


def write(name: str, about: list[str], reference: Reference, errors: Array, second: Array | None = None) -> None:
    """Write the file of a problem: times, q and r, their errors, and what a second scheme gave.

    Parameters
    ----------
    name : str
    about : list of str
        Lines on how the numbers were made and how good they are.
    reference : Reference
    errors : ndarray, shape (T, d1 + 1)
    second : ndarray, shape (T, d1 + 1), optional
    """
    moments = [*(f"q_{k}" for k in range(1, reference.q.shape[1] + 1)), "r"]
    names = ["time", *moments, *(f"{each}_error" for each in moments)]
    columns, digits = [reference.times, reference.q, reference.r, errors], ["%.14f"] * len(moments)
    formats = ["%.6g", *digits, *["%.1e"] * len(moments)]
    if second is not None:
        columns, names = [*columns, second], [*names, *(f"{each}_lagrangian" for each in moments)]
        formats += digits
    header = "\n".join([*about, "", *format_problem(accuracy_problem(name)).splitlines(), "", ", ".join(names)])
    np.savetxt(reference_path(name), np.column_stack(columns), formats, delimiter=", ", header=header)


def write_reference(name: str) -> str:
    """Solve one problem, estimate the errors, write the file, and say in a line how it went."""
    started = time.perf_counter()
    problem, resolution = accuracy_problem(name), resolution_of(name)
    reference = reference_solution(problem, resolution)
    seconds = time.perf_counter() - started
    if name in HARD:
        errors = _by_two_schemes(name, problem, resolution, reference)
    else:
        errors = _by_coarser_solutions(name, problem, resolution, reference)
    return f"{name}: {seconds:.0f} s, errors at most {errors[:, :-1].max():.1e} in q, {errors[:, -1].max():.1e} in r"


def _by_coarser_solutions(name: str, problem: Problem, resolution: Resolution, reference: Reference) -> Array:
    changes = estimated_errors(problem, reference, resolution)
    worst = ", ".join(f"{kind} {change.max():.1e}" for kind, change in changes.items())
    about = [
        *made_by(name, resolution, reference),
        f"Largest change of q and r when the solution is coarser in one respect: {worst}.",
        "The errors in the last columns are the sums of these changes at each time: bounds rather than estimates.",
    ]
    bound: Array = np.sum(list(changes.values()), axis=0)
    write(name, about, reference, bound)
    return bound


def _by_two_schemes(name: str, problem: Problem, resolution: Resolution, reference: Reference) -> Array:
    settings = DensitySettings(tolerance=LAGRANGIAN_TOLERANCE, scheme="lagrangian")
    result: xr.Dataset = meanfield.solve_density(meanfield.with_value(problem, "density", settings))
    second = np.column_stack([result.q.values, result.r.values])
    errors: Array = np.abs(np.column_stack([reference.q, reference.r]) - second)
    if not errors.max() <= AGREEMENT:
        raise InputError(f"{name}: two schemes differ by {errors.max():.1e}, more than {AGREEMENT:g}; refine either")
    claimed = max(float(result.q_error.max()), float(result.r_error.max()))
    about = [
        f"Regime: {HARD[name].regime}.",
        *made_by(name, resolution, reference),
        f"Second scheme: Lagrangian points to {LAGRANGIAN_TOLERANCE:g}, which claims errors of {claimed:.1e} at most.",
        f"The errors are the differences of the two at each time: at most {errors.max():.1e}.",
    ]
    write(name, about, reference, errors, second)
    return errors


def main() -> int:
    """Write the references that are asked for."""
    known = [*TEXTS, *HARD]
    names = sys.argv[1:] or known
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise InputError(f"{unknown[0]}: known problems are {', '.join(known)}; choose among them")
    for name in names:
        print(write_reference(name), flush=True)
    return DONE


if __name__ == "__main__":
    run(main)
