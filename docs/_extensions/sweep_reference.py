"""The keys of sweep files, and what a sweep can keep of each result."""

from __future__ import annotations

from keys_reference import all_keys
from pieces import code, plain, table

from meanfield.sweep.definition import Sweep
from meanfield.sweep.reductions import REDUCTIONS


def page() -> str:
    """Tables of all keys, and of what can be kept."""
    rows = [
        [code(f'"{name}"'), ", ".join(map(code, known.methods)), plain(known.keep.__doc__ or "")]
        for name, known in REDUCTIONS.items()
    ]
    kept = table(["name", "of methods", "what is kept"], rows)
    said = "What lists in `[methods]` can name, besides a function of your own."
    return f"{all_keys(Sweep)}\n\n(reductions)=\n## What is kept of results\n\n{said}\n\n{kept}"
