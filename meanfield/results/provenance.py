"""Provenance of a result: versions, commit, command, machine, time."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from meanfield.ingredients.user_modules import installed_version

PACKAGES = ("numpy", "scipy", "numba", "xarray", "netCDF4")


def provenance(wall_time: float, **extra: Any) -> str:
    """Provenance of a run as JSON text.

    Parameters
    ----------
    wall_time : float
        Seconds the run took.
    **extra
        What else decides its numbers, such as a seed or a backend.
    """
    record = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(sys.argv),
        "versions": _versions(),
        "commit": _commit(),
        "platform": platform.platform(),
        "wall_time_seconds": round(wall_time, 3),
    }
    return json.dumps(record | extra)


def describe_machine() -> str:
    """Processor, cores and versions in a sentence, for pages of measured times; no names."""
    model, info = platform.machine(), Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    versions = (
        f"Python {platform.python_version()}, NumPy {installed_version('numpy')}, numba {installed_version('numba')}"
    )
    return f"{model}, {os.cpu_count()} cores; {versions}."


def about() -> str:
    """Versions of this package and of what it computes with, and where: the beginning of a report of a fault.

    Returns
    -------
    str
        Lines with versions, the commit if it runs from a checkout, the processor, and the folder of compiled code.

    Examples
    --------
    >>> import meanfield
    >>> print(meanfield.about())  # doctest: +ELLIPSIS
    meanfield ...
    """
    from meanfield.process.own_numba.folder import folder

    versions = ", ".join(f"{name} {version}" for name, version in _versions().items() if name != "meanfield")
    return "\n".join(
        [
            f"meanfield {own_version()}, commit {_commit()}, sources {digest_of_sources()[:8]}",
            f"computes with {versions}",
            f"runs on {describe_machine().partition(';')[0]}",
            f"keeps compiled code in {folder()}",
            "is cited by print(meanfield.cite(result)), which depends on the result",
        ]
    )


def _versions() -> dict[str, str]:
    """Versions of Python, of this package as it is imported, installed or not, and of what it computes with."""
    own = {"python": platform.python_version(), "meanfield": own_version()}
    return own | {name: installed_version(name) for name in PACKAGES}


def own_version() -> str:
    """Version of this package."""
    return str(sys.modules["meanfield"].__version__)


SHOWING = (
    "citation",
    "commands",
    "comparison",
    "explanation",
    "figures",
    "interactive",
    "plotting",
    "report",
    "testing",
)
"""Rooms whose code decides no number of a result."""


@cache
def digest_of_sources(package: Path = Path(__file__).parents[1]) -> str:
    """SHA-256 of all code of this package that decides numbers: a checkout changes without a new version."""
    paths = (path for path in sorted(package.rglob("*.py")) if not {*path.relative_to(package).parts} & {*SHOWING})
    digest = sha256()
    for path in paths:
        digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def _commit() -> str:
    """Commit of the checkout that the code runs from, or `unknown` outside of one."""
    here = Path(__file__).parent
    try:
        answer = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return answer.stdout.strip()
