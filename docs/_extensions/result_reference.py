"""Methods and their results, family by family, from the declarations that every file is checked against."""

from __future__ import annotations

from pieces import code, plain, table

from meanfield.methods import VERBS
from meanfield.problems.family import Family
from meanfield.problems.known_families import DEFAULT, families
from meanfield.problems.variable import Variable


def page() -> str:
    """A part for each family: its methods, and a section for each kind of its results."""
    return "\n\n".join(part(family) for family in families())


def part(family: Family) -> str:
    """The methods of a family and its kinds of results."""
    head = f"## Results of the family {code(family.name)}\n\n"
    said = "Its methods, as `meanfield.solve` and `solvers/solve.py` name them:"
    rows = [
        [
            code(name),
            ", ".join(f"[{code(kind)}](#{anchor(family, kind)})" for kind in kinds_of(family, name)),
            "yes" if method.resumes else "no",
            "yes" if method.threads else "no",
            ", ".join(map(code, method.keep)),
        ]
        for name, method in family.methods.items()
    ]
    head_row = ["method", "kinds of results", "goes on when interrupted", "takes `workers`", "kept by sweeps"]
    return "\n\n".join([head + said, table(head_row, rows), *(section(family, kind) for kind in family.all_kinds)])


def kinds_of(family: Family, method: str) -> list[str]:
    """Kinds of results of a method, for every law of data."""
    return [kind for part in family.parts if method in part.methods for kind in part.methods[method].kinds]


def anchor(family: Family, kind: str) -> str:
    """Where the section of a kind of results begins."""
    return f"result-{kind}" if family.name == DEFAULT else f"result-{family.name}-{kind}"


def section(family: Family, kind: str) -> str:
    """The variables of results of a kind, those first that are always there."""
    declared = family.all_kinds[kind]
    rows = [row(family, kind, name, "always") for name in declared.variables]
    rows += [row(family, kind, name, "where it applies") for name in declared.optional]
    if kind == "sweep":
        rows += [row(family, kind, name, "if it is asked for") for name in kept_by_sweeps(family)]
    title = declared.title[0].upper() + declared.title[1:]
    made = f" Made by {{py:obj}}`meanfield.{name}`." if (name := maker(family, kind)) else ""
    head = f"({anchor(family, kind)})=\n### {title}\n\nThe attribute `method` is {code(kind)}.{made}"
    return f"{head}\n\n{table(['variable', 'dims', 'there', 'meaning'], rows)}"


def maker(family: Family, kind: str) -> str:
    """Public function that returns a kind of results: the one that is declared, or the verb of its method, or none."""
    methods = [item for part in family.parts for item in part.methods.items()]
    verbs = (VERBS[name].__name__ for name, method in methods if name in VERBS and kind in method.kinds)
    return family.all_kinds[kind].made_by or next(verbs, "")


def kept_by_sweeps(family: Family) -> list[str]:
    """Variables that are in results of no kind but sweeps."""
    elsewhere = {name for kind in family.all_kinds.values() for name in kind.names}
    return [name for name in family.variables if name not in elsewhere]


def row(family: Family, kind: str, name: str, when: str) -> list[str]:
    """A variable in results of a kind."""
    known = family.all_variables[name]
    return [code(name), dims_of(family, kind, known), when, plain(known.long_name) + where(family, known)]


def where(family: Family, known: Variable) -> str:
    """Which problems have a variable, and along which dims, if these differ from problem to problem."""
    if known.unless:
        return f"; not there with several of {code(', '.join(known.unless))}"
    only = [dim for dim in known.dims if dim in family.particular_dims and not dim.endswith("_")]
    if only or known.only:
        return f"; there with several of {code(', '.join(only or known.only))} only"
    return f"; with several also along {code(', '.join(known.last_dims))}" if known.last_dims else ""


def dims_of(family: Family, kind: str, known: Variable) -> str:
    """Dims of a variable, with those of replicas where there are some."""
    dims = family.all_kinds[kind].dims(known)
    if kind == "particles":
        dims = (*known.optional_dims, *dims)
    if kind == "sweep":
        dims = ("(axes)", *dims)
    return code(", ".join(dims)) if dims else ""
