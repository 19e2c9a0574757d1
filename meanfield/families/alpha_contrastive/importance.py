"""Pairwise importance of a problem: which pairs of samples count, and how much (alpha_contrastive.md, section 1)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, ValidationInfo

from meanfield.ingredients.activations import Activation
from meanfield.ingredients.named_functions import NamesFunctions
from meanfield.ingredients.nearest import nearest
from meanfield.ingredients.part import FieldError
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.ingredients.user_functions import Catalogue, check_with_slope, is_address
from meanfield.numerics.compiled.scalar_functions import evaluate

KINDS = (*("quadratic", "infonce", "gaussian", "triplet", "soft_triplet", "tuplet", "lifted", "modified_triplet"),)
"""Importances of the library."""

USES_TEMPERATURE = ("infonce", "gaussian", "soft_triplet", "modified_triplet")
USES_EPSILON = ("infonce", "triplet", "soft_triplet", "lifted")


def _check_from_zero(made: Activation, name: str) -> Activation:
    return check_with_slope(made, name, least=0.0)


own_function: Catalogue[Activation] = Catalogue({}, Activation, _check_from_zero)
"""Function of d^2 >= 0 that a user gives, with its derivative."""


class Importance(NamesFunctions):
    """Importance alpha of pairs of samples."""

    function_key: ClassVar[str] = "importance.kind"
    make: ClassVar[Any] = own_function

    kind: str = Field(
        default="quadratic",
        description=f"one of {', '.join(KINDS)}, or your own function of d^2 = |f - f'|^2/2 as 'package.module:name'",
    )
    temperature: Annotated[float, Field(ge=1e-6, le=1e6), OrSchedule()] = Field(
        default=1.0, description="tau of infonce, gaussian, soft_triplet, and 1/c of modified_triplet"
    )
    epsilon: Annotated[float, Field(ge=-1e6, le=1e6), OrSchedule()] = Field(
        default=0.0,
        description="epsilon: weight of the positive pair in infonce, margin or shift of triplet, soft_triplet, lifted",
    )
    argument: Literal["source", "views"] = Field(
        default="source", description="whether alpha looks at samples before augmentation, or at their views"
    )
    diagonal: Literal["exclude", "include"] = Field(
        default="exclude", description="whether a sample makes a pair with itself"
    )

    def look_up(self, info: ValidationInfo) -> None:
        """See `NamesFunctions.look_up`: importances of the library are no functions."""
        if not is_address(self.kind):
            if self.kind not in KINDS:
                raise FieldError(
                    "kind",
                    f"unknown name '{self.kind:.60}'; {nearest(self.kind, list(KINDS))} (your own is "
                    "'package.module:name')",
                )
            if self.kind == "infonce" and isinstance(self.epsilon, Schedule):
                self.epsilon.narrow(ge=0.0)
            elif self.kind == "infonce" and self.epsilon < 0:
                raise FieldError("epsilon", f"= {self.epsilon:g} is a weight of infonce; give 0 or more")
            return
        super().look_up(info)
        found = self.__dict__.get("_found")
        if found is not None and isinstance(found.content, Activation):
            self._check_own(found.content)

    def _check_own(self, function: Activation) -> None:
        points = np.linspace(0.0, 40.0, 401)  # values of d^2
        values = evaluate(function.value, points)
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(wrong):
            at = points[wrong[0]]
            raise FieldError(
                "kind", f"'{self.kind}' is {values[wrong[0]]:g} at d^2 = {at:g}; an importance is a number >= 0"
            )

    @property
    def own(self) -> Activation | None:
        """Function of a user that `kind` names, with its derivative; None for those of the library.

        Raises
        ------
        InputError
            If it cannot be imported.
        """
        return self.found() if is_address(self.kind) else None
