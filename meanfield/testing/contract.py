"""Contract of a family: it is declared as a whole, and solved, stored, compared, drawn, explained and swept."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any

from meanfield.problems.family import Family
from meanfield.testing import declarations, methods
from meanfield.testing.example import Example

Check = tuple[str, Callable[[], None]]
"""Name of a check, and the check, which raises `AssertionError`."""


def checks_of(family: Family) -> Iterator[Check]:
    """The checks of the contract one by one, for a test runner.

    Parameters
    ----------
    family : Family

    Examples
    --------
    >>> import pytest
    >>> from meanfield.families.contrastive import FAMILY
    >>> from meanfield.testing import checks_of
    >>> @pytest.mark.parametrize(("name", "check"), checks_of(FAMILY))
    ... def test_contract(name, check):
    ...     check()
    """
    example = Example(family)
    for check in (
        declarations.check_names,
        declarations.check_variables,
        declarations.check_kinds,
        declarations.check_methods,
        declarations.check_addresses,
    ):
        yield check.__name__, partial(check, family)
    for of_example in (
        declarations.check_keys,
        methods.check_problem_file,
        methods.check_verbs,
        methods.check_explanation,
        methods.check_comparison,
        methods.check_report,
    ):
        yield of_example.__name__, partial(_in_a_folder, of_example, example)
    for of_method in (
        methods.check_result,
        methods.check_repetition,
        methods.check_file,
        methods.check_conventions,
        methods.check_tables,
        methods.check_figure,
        methods.check_sweep,
        methods.check_interruption,
        methods.check_threads,
        methods.check_resumption,
    ):
        for name in family.methods:
            yield f"{of_method.__name__}[{name}]", partial(_in_a_folder, of_method, example, name)


def check_family(family: Family, quiet: bool = False) -> None:
    """Check that a family fulfils the contract, and print what is checked, in a line each, and how many checks passed.

    It takes as long as solving its example some dozen times.

    Parameters
    ----------
    family : Family
        Its example must be solved by every method that it declares.
    quiet : bool
        Whether to print nothing.

    Raises
    ------
    AssertionError
        Of the first check that fails, with its name and what is wrong.
    """
    checks = list(checks_of(family))
    for name, check in checks:
        try:
            check()
        except AssertionError as error:
            raise AssertionError(f"family '{family.name}', {name}: {error}") from error
        if not quiet:
            print(f"passed {name.removeprefix('check_')}", flush=True)
    if not quiet:
        print(f"family '{family.name}': all {len(checks)} checks passed")


def _in_a_folder(check: Callable[..., None], *arguments: Any) -> None:
    """Run a check in an empty working directory of its own."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        check(*arguments, Path(folder))
