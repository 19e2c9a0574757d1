"""Table of a problem that names an update rule, and how it is run; classical rules of one vector have names."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field, ValidationInfo

from meanfield.families.update_rule.rule import Function, Rule, check_rule
from meanfield.ingredients.named_functions import NamesFunctions
from meanfield.ingredients.part import NamedValues
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.ingredients.user_functions import Catalogue


def _misclassified(y: Any, s: Any) -> Any:
    return s * y < 0


def _hebb(y: Any, rate: float) -> Any:
    return rate * np.sign(y)


def _perceptron(y: Any, s: Any, rate: float) -> Any:
    return rate * np.sign(y) * (s * y < 0)


def _adatron(y: Any, s: Any, rate: float) -> Any:
    return -rate * s * (s * y < 0)


def _regression(y: Any, s: Any, rate: float) -> Any:
    return rate * (y - s)


def _half_square(y: Any, s: Any) -> Any:
    return 0.5 * (y - s) ** 2


def _phase_retrieval(y: Any, s: Any, rate: float) -> Any:
    return rate * (y * y - s * s) * s


def _loss_of_squares(y: Any, s: Any) -> Any:
    return 0.25 * (y * y - s * s) ** 2


def _oja(s: Any, rate: float) -> Any:
    return rate * s


def _cube(s: Any, rate: float) -> Any:
    return rate * s**3


RULES: dict[str, Rule] = {
    "hebb": Rule(_hebb, kinks=("y", "s"), observables={"error": _misclassified}),
    "perceptron": Rule(_perceptron, kinks=("y", "s"), observables={"error": _misclassified}),
    "adatron": Rule(_adatron, kinks=("y", "s"), observables={"error": _misclassified}),
    "regression": Rule(_regression, observables={"error": _half_square}),
    "phase_retrieval": Rule(_phase_retrieval, observables={"error": _loss_of_squares}),
    "oja": Rule(_oja),
    "ica": Rule(_cube),
}
"""Update rules by name; all take the parameter `rate`."""


make_rule = Catalogue(RULES, Rule, check_rule)
"""Rule that a problem file names; a user's function is a step without kinks."""

Constraint = Literal["none", "sphere", "gram_schmidt", "polar"]

Parameter = Annotated[float, Field(ge=-1e12, le=1e12), OrSchedule()]


class Model(NamesFunctions):
    """Update rule and its numbers."""

    function_key: ClassVar[str] = "model.rule"
    make: ClassVar[Any] = make_rule

    rule: str | None = Field(
        default=None,
        description=f"one of {', '.join(RULES)}, or your own as 'module:name', a function or a meanfield.Rule; left "
        "out where [[draws]] name functions",
    )
    rule_parameters: Annotated[dict[str, Parameter], AfterValidator(NamedValues)] = Field(
        default=NamedValues(), description="numbers that the rule reads by name, or schedules, such as { rate = 0.7 }"
    )
    batch_size: Annotated[int, Field(ge=1, le=10**6), OrSchedule()] = Field(
        default=1, description="m, the number of samples per step, or a schedule of whole numbers, in steps"
    )
    constraint: Constraint = Field(
        default="none",
        description="what follows each step: nothing, each student back to its length, or students made orthonormal "
        "one after the other or all alike",
    )

    def look_up(self, info: ValidationInfo) -> None:
        """See `NamesOutside.look_up`."""
        if self.rule is not None:
            super().look_up(info)

    @property
    def functions(self) -> Rule:
        """The rule that `rule` names.

        Raises
        ------
        InputError
            If it cannot be imported.
        """
        found: Rule = self.found()
        return found


class Side(NamesFunctions):
    """Number that the algorithm trains besides its vectors."""

    function_key: ClassVar[str] = "side.step"
    make: ClassVar[Any] = make_rule

    start: float | None = Field(default=None, ge=-1e6, le=1e6, description="its value at the start")
    step: str = Field(description="its step times N as 'module:name', a function of what a rule may read")
    draw: str | None = Field(
        default=None, description="name of the kind of sample that it reads, one of draws; by default the first"
    )

    @property
    def function(self) -> Function:
        """The function that `step` names.

        Raises
        ------
        InputError
            If it cannot be imported.
        """
        found: Function = self.found().step
        return found
