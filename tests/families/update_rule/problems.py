"""Problems of update rules for tests."""

from __future__ import annotations

from typing import Any

import meanfield

OWN = "tests.families.update_rule.own_rules:"
"""Module of the rules of tests."""


def problem(rule: str, rate: float | None = None, **tables: Any) -> Any:
    """Problem of a rule, of the tests' own unless the library knows it, with one output at each unit of time."""
    model = {"rule": rule if rule in ("hebb", "perceptron", "adatron", "phase_retrieval", "ica", "oja") else OWN + rule}
    numbers = tables.pop("numbers", {}) | ({} if rate is None else {"rate": rate})
    more = tables.pop("model", {})
    time = tables.pop("time", {"stop": 4.0, "outputs": 5})
    return meanfield.Problem(
        family="update_rule", model=model | {"rule_parameters": numbers} | more, time=time, **tables
    )


def feature(overlap: Any, second_moment: float | None = None, **keys: Any) -> dict[str, Any]:
    """Feature with an overlap at the start, and a Gaussian hidden variable if there is a signal."""
    hidden = {} if second_moment is None else {"hidden": {"law": "gaussian", "second_moment": second_moment}}
    return {"initial_overlap": overlap} | hidden | keys
