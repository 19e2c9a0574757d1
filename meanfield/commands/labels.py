"""Labels of result files, by which a comparison or a page names them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from meanfield.errors import InputError


def labelled(paths: Sequence[Path]) -> dict[str, Path]:
    """Files by the shortest end of their path that tells them apart: `sgd`, or `a/out` where several are called `out`.

    Parameters
    ----------
    paths : sequence of Path

    Raises
    ------
    InputError
        If a file is named twice.
    """
    whole = [Path(os.path.abspath(path)) for path in paths]
    for i, path in enumerate(whole):
        if path in whole[:i]:
            raise InputError(f"{paths[i]} is named twice; give each result once")
    bare = [path.with_suffix("") for path in whole]
    parts = [path.parts for path in (bare if len(set(bare)) == len(bare) else whole)]
    return {_shortest(own, parts): path for own, path in zip(parts, paths, strict=True)}


def _shortest(own: tuple[str, ...], parts: Sequence[tuple[str, ...]]) -> str:
    """Shortest end of a path that no other path has."""
    depth = 1
    while sum(other[-depth:] == own[-depth:] for other in parts) > 1:
        depth += 1
    return "/".join(own[-depth:])
