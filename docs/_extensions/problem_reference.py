"""The keys of problem files, family by family."""

from __future__ import annotations

from keys_reference import Place, all_keys
from pieces import code, plain, table

from meanfield.problems.family import Family
from meanfield.problems.known_families import DEFAULT, families

FAMILY_KEY = (
    code("family"),
    "text",
    code(f'"{DEFAULT}"'),
    f"name of an installed family, or the address {code('module:FAMILY')} of your own",
)
"""Row of the key that says of which family a problem is; it decides which model reads all others."""


def page() -> str:
    """A table of the families, then a section for each with all keys of its problem files."""
    known = list(families())
    rows = [[f"[{code(family.name)}](#family-{family.name})", plain(family.title), methods(family)] for family in known]
    head = "(families)=\n## Families\n\nThe families that are installed, and the methods that solve their problems."
    return "\n\n".join([head, table(["family", "problems", "methods"], rows), *map(section, known)])


def methods(family: Family) -> str:
    """Names of the methods of a family."""
    return ", ".join(map(code, family.methods))


def section(family: Family) -> str:
    """All keys of the problem files of a family."""
    title = plain(family.title[0].upper() + family.title[1:] + ".")
    head = f"(family-{family.name})=\n## Problems of the family {code(family.name)}\n\n{title}"
    anchors = "table" if family.name == DEFAULT else f"table-{family.name}"
    parts = [f"{head}\n\n{all_keys(family.problem_class, Place('###', anchors), [FAMILY_KEY])}"]
    for law, other in zip(filter(family.laws.get, family.laws), family.parts[1:], strict=True):
        named = code(f'data.law = "{law}"')
        said = f"With {named}: {plain(other.title)}."
        place = Place("####", f"{anchors}-{law}")
        parts.append(f"### Problems with the law {code(law)}\n\n{said}\n\n{all_keys(other.problem_class, place)}")
    return "\n\n".join(parts)
