"""Contract of a family: it is declared as a whole, and solved, stored, compared, drawn, explained and swept."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any, get_args

from meanfield.ingredients.part import Part
from meanfield.problems.base import Problem
from meanfield.problems.family import Family, resolve
from meanfield.testing import in_time, methods, starts
from meanfield.testing.methods import Example
from meanfield.testing.verdicts import check_verdicts


def check_names(family: Family) -> None:
    """Check that the family, its methods and kinds have names and titles."""
    assert re.fullmatch(r"[a-z][a-z0-9_]*", family.name), f"the name '{family.name}' is no word in lower case"
    assert family.title, "title is empty; say in a line what is trained on what"
    for name, method in family.methods.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), f"the method '{name}' is no word in lower case"
        assert method.title, f"methods['{name}'].title is empty"
    for name, kind in family.kinds.items():
        assert kind.title, f"kinds['{name}'].title is empty"
        assert name not in ("comparison", "sweep"), f"kinds['{name}'] is declared for all families already"


def check_variables(family: Family) -> None:
    """Check that variables have a meaning, and that those they need or increase along are declared."""
    for name, known in family.all_variables.items():
        where = f"variables['{name}']"
        assert known.long_name, f"{where}.long_name is empty"
        assert known.range[0] < known.range[1], f"{where}.range = {known.range} holds no number"
        assert not known.increasing or len(known.dims) == 1, f"{where} increases, but has dims {known.dims}"
        assert known.words or not known.choices, f"{where} has choices, and words is False"
        for other in known.needs:
            assert other in family.all_variables, f"{where}.needs '{other}', which is not declared"


def check_kinds(family: Family) -> None:
    """Check that kinds hold variables that are declared, each once."""
    for name, kind in family.all_kinds.items():
        held = kind.names
        assert kind.variables, f"kinds['{name}'].variables is empty"
        assert len(set(held)) == len(held), f"kinds['{name}'] names a variable twice"
        for variable in held:
            assert variable in family.all_variables, f"kinds['{name}'] holds '{variable}', which is not declared"


def check_methods(family: Family) -> None:
    """Check that methods declare kinds and reductions that exist, and every kind can be compared, drawn or made."""
    assert family.methods, "methods is empty"
    for name, method in family.methods.items():
        assert method.kinds, f"methods['{name}'].kinds is empty"
        for kind in method.kinds:
            assert kind in family.kinds, f"methods['{name}'] returns '{kind}', which is not declared"
        for reduction in method.keep:
            assert reduction in family.reductions, f"methods['{name}'].keep '{reduction}', which is not declared"
    for name in family.distances:
        assert name in family.variables, f"distances has '{name}', which is not declared"
    assert bool(family.distances) == bool(family.measure_distances), "distances and measure_distances need each other"


def check_addresses(family: Family) -> None:
    """Check that there is an object at every address "module:name"."""
    for where, address in _addresses(family):
        try:
            found = resolve(address)
        except (ImportError, AttributeError, ValueError) as error:
            raise AssertionError(f"{where} = '{address}': {error}") from error
        assert callable(found), f"{where} = '{address}' is {type(found).__name__}, not a function"
    assert issubclass(family.problem_class, Problem), f"problem = '{family.problem}' is no Problem"
    assert Path(family.example_path).is_file(), f"example = '{family.example}': there is no {family.example_path}"


def _addresses(family: Family) -> Iterator[tuple[str, str]]:
    for field in ("problem", "measure_distances", "measure_deviations", "wording", "warnings"):
        if getattr(family, field):
            yield field, getattr(family, field)
    for name, address in family.reductions.items():
        yield f"reductions['{name}']", address
    for name, method in family.methods.items():
        for field in ("solve", "check", "cost"):
            if getattr(method, field):
                yield f"methods['{name}'].{field}", getattr(method, field)
    for name, kind in family.all_kinds.items():
        for field in ("check", "figure", "numbers", "notes"):
            if getattr(kind, field):
                yield f"kinds['{name}'].{field}", getattr(kind, field)


def check_keys(example: Example, folder: Path) -> None:
    """Check that every key of the problem file is described."""
    for model, path in _parts(example.family.problem_class, ""):
        for name, field in model.model_fields.items():
            inner = list(_parts_in(field.annotation))
            described = field.description or name == "law" or any(part.__doc__ for part in inner)
            assert described, f"the key '{path}{name}' has no description; give its Field one, or its class a docstring"


def _parts(model: type[Part], path: str) -> Iterator[tuple[type[Part], str]]:
    yield model, path
    for name, field in model.model_fields.items():
        for part in _parts_in(field.annotation):
            yield from _parts(part, f"{path}{name}.")


def _parts_in(annotation: Any) -> Iterator[type[Part]]:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for inner in get_args(annotation):
        yield from _parts_in(inner)


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
        check_names,
        check_variables,
        check_kinds,
        check_methods,
        check_addresses,
    ):
        yield check.__name__, partial(check, family)
    for of_example in (
        check_keys,
        methods.check_problem_file,
        methods.check_verbs,
        methods.check_explanation,
        methods.check_comparison,
        check_verdicts,
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
        in_time.check_schedules,
        in_time.check_phases,
        starts.check_start,
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
