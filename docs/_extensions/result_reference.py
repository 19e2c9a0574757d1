"""Tables of the variables in result files, from the declarations that every file obeys."""

from __future__ import annotations

from pieces import code, plain, table

from meanfield.problems.family import Family, Variable
from meanfield.problems.known_families import families


def page() -> str:
    """A part for each family, with a section for each kind of its results."""
    return "\n\n".join(section(family, kind) for family in families() for kind in family.all_kinds)


def section(family: Family, kind: str) -> str:
    """The variables of results of a kind, those first that are always there."""
    declared = family.all_kinds[kind]
    rows = [row(family, kind, name, "always") for name in declared.variables]
    rows += [row(family, kind, name, "where it applies") for name in declared.optional]
    if kind == "sweep":
        rows += [row(family, kind, name, "if it is asked for") for name in kept_by_sweeps(family)]
    title = declared.title[0].upper() + declared.title[1:]
    made = f"{{py:obj}}`meanfield.{declared.made_by}` makes them; " if declared.made_by else ""
    head = f"(result-{kind})=\n## {title}\n\n{made}`method` is {code(kind)}."
    return f"{head}\n\n{table(['variable', 'dims', 'there', 'meaning'], rows)}"


def kept_by_sweeps(family: Family) -> list[str]:
    """Variables that are in results of no kind but sweeps."""
    elsewhere = {name for kind in family.all_kinds.values() for name in (*kind.variables, *kind.optional)}
    return [name for name in family.variables if name not in elsewhere]


def row(family: Family, kind: str, name: str, when: str) -> list[str]:
    """A variable in results of a kind."""
    known = family.all_variables[name]
    return [code(name), dims_of(family, kind, known), when, plain(known.long_name)]


def dims_of(family: Family, kind: str, known: Variable) -> str:
    """Dims of a variable, with those of replicas where there are some."""
    dims = family.all_kinds[kind].dims(known)
    if kind == "particles":
        dims = (*known.optional_dims, *dims)
    if kind == "sweep":
        dims = ("(axes)", *dims)
    return code(", ".join(dims)) if dims else ""
