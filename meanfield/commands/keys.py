"""List the keys of problem files, with type, range, default and meaning: all of a family, or those that begin alike.

meanfield keys
meanfield keys contrastive
meanfield keys contrastive model.learning_rate
"""

from __future__ import annotations

import re
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from meanfield.cli import DONE
from meanfield.errors import InputError
from meanfield.process.start_up import start_up

if TYPE_CHECKING:
    from meanfield.problems.family import Family

BRACKETS = re.compile(r"\[\d*\]|\(\w+\)")
"""Numbers of tables and names of laws within a key, which one need not give."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("family", nargs="?", metavar="FAMILY", help="the family; all are listed without it")
    parser.add_argument("key", nargs="?", default="", metavar="KEY", help="a key or table, such as model.learning_rate")


def run(arguments: Namespace) -> int:
    """List families, or keys.

    Raises
    ------
    InputError
        If there is no such family or key.
    """
    with start_up():
        from meanfield.ingredients.nearest import nearest
        from meanfield.problems.known_families import families, find_family
    if arguments.family is None:
        print("\n".join(f"{family.name:20}{family.title}" for family in families()))
        return DONE
    known = dict(_described(find_family(arguments.family)))
    asked = BRACKETS.sub("", arguments.key)
    chosen = [text for key, text in known.items() if f"{BRACKETS.sub('', key)}.".startswith(asked and f"{asked}.")]
    if not chosen:
        raise InputError(f"problems of the family '{arguments.family}' have no key '{asked}'; {nearest(asked, known)}")
    print("\n".join(chosen))
    return DONE


def _described(family: Family) -> Iterator[tuple[str, str]]:
    """Keys of all problems of a family, each with what there is to say about it; keys of a law are named with it."""
    with start_up():
        from meanfield.problems.key_tables import Table, Words, keys_of, tables_of

    laws = ["", *filter(family.laws.get, family.laws)]
    for law, part in zip(laws, family.parts, strict=True):
        model = part.problem_class
        for table in (Table("", "", "", model), *tables_of(model)):
            of_law = f"({table.law})." if table.law else table.path and "."
            for key in keys_of(table.part, table.path, Words()) if table.part else ():
                name = f"{table.key}{of_law}{key.name}"
                default = {"required": "required", "optional": "optional", "none": "optional"}.get(
                    key.default, f"default {key.default}"
                )
                where = f", with data.law = '{law}'" if law else ""
                meaning = textwrap.fill(key.meaning, 100, initial_indent="    ", subsequent_indent="    ")
                yield name, f"{name}: {key.kind.replace(chr(0xA0), ' ')}; {default}{where}\n{meaning}"
