#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.10.14"]
# ///
"""Sessions for systems without make, and for versions that are not pinned: `nox --list` shows them."""

import nox

nox.needs_version = ">=2025.10.14"
nox.options.default_venv_backend = "uv|venv"


@nox.session
def lint(session: nox.Session) -> None:
    """Linters, formatter and type checker, with the versions that are pinned."""
    session.install("--constraint", "constraints.txt", "--editable", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """The tests that `make test` runs, with the newest versions of packages; arguments go to pytest."""
    session.install("--editable", ".[test]")
    run_tests(session)


@nox.session(default=False)
def pre_releases(session: nox.Session) -> None:
    """The same with pre-releases of numba and numpy."""
    session.install("--editable", ".[test]")
    session.install("--pre", "--upgrade", "numba", "llvmlite", "numpy")
    run_tests(session)


def run_tests(session: nox.Session) -> None:
    """Two processes with one thread of linear algebra each."""
    arguments = session.posargs or ["-n", "2", "--dist", "worksteal"]
    session.run("pytest", *arguments, env={"OMP_NUM_THREADS": "1"})


if __name__ == "__main__":
    nox.main()
