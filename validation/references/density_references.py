"""Write data/reference/density_NAME.csv for the problems of `density_problems.py`: q and r to about ten digits.

Names as arguments choose some of them; all together take half an hour or more.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from meanfield.cli import DONE, run
from meanfield.errors import InputError
from meanfield.problems.file import format_problem
from validation.references.density_problems import RESOLUTIONS, TEXTS, accuracy_problem, reference_path
from validation.references.spectral_elements import Reference, Resolution, estimated_errors, reference_solution

Array = np.ndarray
COMMAND = "validation.references.density_references"


def header(name: str, resolution: Resolution, reference: Reference, errors: dict[str, Array]) -> str:
    """How the numbers were made, how good they are, and the names of the columns."""
    overlaps = [f"q_{k}" for k in range(1, reference.q.shape[1] + 1)]
    worst = ", ".join(f"{kind} {changes.max():.1e}" for kind, changes in errors.items())
    norm, mass = (abs(x - 1).max() for x in (reference.norm, reference.mass))
    lines = [
        f"Solution of theory.md, section 2, by `python -m {COMMAND} {name}`: spectral elements.",
        f"{resolution}:",
        f"{reference.steps} time steps, {len(reference.u)} nodes in u, {reference.mesh.size} values in w for each.",
        f"E[w^2] is off by at most {norm:.1e}, the mass by {mass:.1e}.",
        f"Largest change of q and r when the solution is coarser in one respect: {worst}.",
        "The errors in the last columns are the sums of these changes at each time: bounds rather than estimates.",
        "",
        *format_problem(accuracy_problem(name)).splitlines(),
        "",
        ", ".join(["time", *overlaps, "r", *(f"{q}_error" for q in overlaps), "r_error"]),
    ]
    return "\n".join(lines)


def write_reference(name: str) -> str:
    """Solve one problem, estimate the errors, write the file, and say in a line how it went."""
    started = time.perf_counter()
    problem, resolution = accuracy_problem(name), RESOLUTIONS.get(name, Resolution())
    reference = reference_solution(problem, resolution)
    seconds = time.perf_counter() - started
    errors = estimated_errors(problem, reference, resolution)
    bound = np.sum(list(errors.values()), axis=0)
    table = np.column_stack([reference.times, reference.q, reference.r, bound])
    digits = ["%.6g"] + ["%.14f"] * (bound.shape[1]) + ["%.1e"] * bound.shape[1]
    np.savetxt(reference_path(name), table, digits, delimiter=", ", header=header(name, resolution, reference, errors))
    return f"{name}: {seconds:.0f} s, errors at most {bound[:, :-1].max():.1e} in q, {bound[:, -1].max():.1e} in r"


def main() -> int:
    """Write the references that are asked for."""
    names = sys.argv[1:] or list(TEXTS)
    unknown = sorted(set(names) - set(TEXTS))
    if unknown:
        raise InputError(f"{unknown[0]}: known problems are {', '.join(TEXTS)}")
    for name in names:
        print(write_reference(name), flush=True)
    return DONE


if __name__ == "__main__":
    run(main)
