"""Tables of the variables in result files, from the schema that every file obeys."""

from __future__ import annotations

from pieces import code, plain, table

from meanfield.families.contrastive.results import INSTEAD_OF_TIME, METHODS, OPTIONAL, VARIABLES

MADE_BY = {
    "density": ("The density of weights and features", "solve_density"),
    "order_parameters": ("The order parameters", "solve_order_parameters"),
    "particles": ("SGD at finite N", "simulate_sgd"),
    "ensemble": ("Statistics of SGD", "simulate_sgd"),
    "stationary": ("Stationary states of the density", "find_stationary_states"),
    "continuation": ("Branches of stationary states", "continue_stationary_states"),
    "dynamics": ("What the order parameters do", "analyse_dynamics"),
    "portrait": ("Phase portraits", "phase_portrait"),
    "fixed_point_branches": ("Branches of fixed points", "continue_fixed_points"),
    "comparison": ("Comparisons", "compare"),
    "sweep": ("Sweeps", "run_sweep"),
}
"""What results of each method are, and the function that makes them."""


IN_RESULTS = {name for tables in (METHODS, OPTIONAL) for names in tables.values() for name in names}
"""All others are kept by sweeps alone."""


def page() -> str:
    """A section for each method."""
    return "\n\n".join(map(section, [*MADE_BY, *(method for method in METHODS if method not in MADE_BY)]))


def section(method: str) -> str:
    """The variables of a method's results, those first that are always there."""
    title, function = MADE_BY[method]
    rows = [row(method, name, "always") for name in METHODS[method]]
    rows += [row(method, name, "where it applies") for name in OPTIONAL.get(method, ())]
    if method == "sweep":
        rows += [row(method, name, "if it is asked for") for name in VARIABLES if name not in IN_RESULTS]
    head = f"(result-{method})=\n## {title}\n\n{{py:obj}}`meanfield.{function}` makes them; `method` is {code(method)}."
    return f"{head}\n\n{table(['variable', 'dims', 'there', 'meaning'], rows)}"


def row(method: str, name: str, when: str) -> list[str]:
    """A variable in results of a method."""
    known = VARIABLES[name]
    dims = [INSTEAD_OF_TIME.get(method, dim) if dim == "time" else dim for dim in known.dims]
    if known.per_replica and method == "particles":
        dims = ["replica", *dims]
    if method == "sweep":
        dims = ["(axes)", *dims]
    return [code(name), code(", ".join(dims)) if dims else "", when, plain(known.long_name)]
