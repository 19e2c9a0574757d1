"""Declaration of a family in which one vector is trained."""

from __future__ import annotations

from meanfield.mckean_vlasov import declarations
from meanfield.problems.family import Family, Method

METHODS = "meanfield.one_vector.methods"


def vector_family(name: str, title: str, problem: str, example: str) -> Family:
    """Family of problems derived from `VectorProblem`, with a density, order parameters and SGD.

    Parameters
    ----------
    name : str
        The word in problem files.
    title : str
        A line about it.
    problem : str
        "module:class" of its problems, a subclass of `VectorProblem`.
    example : str
        "module:file" of a problem that every method solves within a second, beside the module.

    Returns
    -------
    Family
        `dataclasses.replace` gives it further variables, kinds or methods.
    """
    return Family(
        name=name,
        title=title,
        problem=problem,
        example=example,
        variables=declarations.VARIABLES,
        kinds=declarations.KINDS,
        methods={
            "density": Method("density", f"{METHODS}:solve_density", ("density",), keep=tuple(declarations.REDUCTIONS)),
            "order_parameters": Method(
                "order parameters",
                f"{METHODS}:solve_order_parameters",
                ("order_parameters",),
                check=f"{METHODS}:check_order_parameters",
                keep=tuple(declarations.REDUCTIONS),
            ),
            "particles": Method(
                "particles",
                f"{METHODS}:simulate_sgd",
                ("particles", "ensemble"),
                check=f"{METHODS}:simulation_of",
                resumes=True,
                threads=True,
                keep=tuple(declarations.REDUCTIONS),
            ),
        },
        distances=tuple(declarations.DISTANCES),
        measure_distances="meanfield.comparison.weights:distances",
        measure_deviations="meanfield.comparison.weight_deviations:deviations",
        reductions=declarations.REDUCTIONS,
    )
