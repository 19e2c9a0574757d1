"""The keys of sweep files, and what a sweep can keep of each result."""

from __future__ import annotations

from keys_reference import Place, all_keys
from pieces import code, plain, table

from meanfield.problems.family import Family, resolve
from meanfield.problems.known_families import families
from meanfield.sweep.definition import Sweep
from meanfield.sweep.reductions import EVERYTHING, everything


def page() -> str:
    """Tables of all keys, and of what can be kept."""
    rows = [row for family in families() for row in reductions(family)]
    rows.append([code(f'"{EVERYTHING}"'), "all", plain(everything.__doc__ or "")])
    kept = table(["name", "of methods", "what is kept"], rows)
    said = "What lists in `[methods]` can name, besides a function of your own."
    return f"{all_keys(Sweep, Place())}\n\n(reductions)=\n## What is kept of results\n\n{said}\n\n{kept}"


def reductions(family: Family) -> list[list[str]]:
    """Rows of what sweeps may keep of a family's results."""
    return [
        [
            code(f'"{name}"'),
            ", ".join(code(method) for method, known in family.methods.items() if name in known.keep),
            plain(resolve(address).__doc__ or ""),
        ]
        for name, address in family.reductions.items()
    ]
