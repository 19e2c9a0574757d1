"""The keys of problem files."""

from __future__ import annotations

from keys_reference import all_keys

from meanfield.families.contrastive.problem import Problem


def page() -> str:
    """Tables of all keys."""
    return all_keys(Problem)
