"""Laws of all hidden variables together, for features that depend on each other.

The theory asks only that the hidden variables of a sample are drawn together, so that mixed moments enter.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from meanfield.ingredients.laws.base import AtomicPart, Probabilities, Values, check_not_zero, check_probabilities
from meanfield.ingredients.laws.empirical import JointEmpirical
from meanfield.typing import FloatArray


class JointDiscrete(AtomicPart):
    """The vector c takes `values` with `probabilities`."""

    law: Literal["discrete"] = "discrete"
    values: Annotated[tuple[Values, ...], Field(strict=False, min_length=1)] = Field(
        description="the vectors that c takes, one number per feature in each, for instance [[1.0, 0.5], [-1.0, -0.5]]"
    )
    probabilities: Probabilities

    @model_validator(mode="after")
    def _is_a_law(self) -> JointDiscrete:
        check_probabilities(len(self.values), self.probabilities)
        lengths = {len(value) for value in self.values}
        if len(lengths) > 1:
            raise ValueError(
                f"values have {' and '.join(map(str, sorted(lengths)))} entries; give one for each feature"
            )
        check_not_zero(np.array(self.values), self.probabilities)
        return self

    @property
    def dimension(self) -> int:
        """See `HiddenPart.dimension`."""
        return len(self.values[0])

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """See `AtomicPart.atoms`."""
        probabilities = np.array(self.probabilities)
        return np.array(self.values, dtype=float), probabilities / probabilities.sum()


JointLaw = Annotated[JointDiscrete | JointEmpirical, Field(discriminator="law")]
