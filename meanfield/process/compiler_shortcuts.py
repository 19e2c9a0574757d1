"""Shorter ways through the compiler of numba to the same results.

Before numba generates code, it asks hundreds of thousands of times for the options of functions that it has compiled,
and for the variables of each statement. Both cost a tenth of the time of a first result.

Imports numba, and is imported when something else has imported it, if its version is one of
`meanfield.process.numba_versions`.
"""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

from numba.core import ir, targetconfig

_WITHOUT_VARIABLES = {bool, int, str, type(None), type(operator.add), ir.Const, ir.Global, ir.Loc}
"""Types of what most parts of statements are."""


def take_shortcuts() -> None:
    """Replace methods of numba in this process."""
    config: Any = targetconfig.TargetConfig
    statement: Any = ir.Inst
    config.values = _options
    statement._rec_list_vars = _variables


@lru_cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


def _options(self: Any) -> Any:
    """Values of all options by their names, without a call for each of them."""
    kind: Any = type(self)
    return _defaults(kind) | self._values


_variables_of_any: Any = ir.Inst._rec_list_vars


def _variables(self: Any, value: Any) -> list[Any]:
    """Variables in a part of a statement, without a call for each part that has none."""
    kind = type(value)
    if kind not in (dict, list, tuple):
        return _variables_of_any(self, value)  # type: ignore[no-any-return]
    found = []
    for part in value.values() if kind is dict else value:
        kind = type(part)
        if kind is ir.Var:
            found.append(part)
        elif kind not in _WITHOUT_VARIABLES:
            found += self._rec_list_vars(part)
    return found
