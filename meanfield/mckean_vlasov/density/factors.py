"""Factors on default cells and steps, which grow when a solution shows that the defaults do not suffice."""

from __future__ import annotations

from typing import NamedTuple

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.density.evolution import LongStepsError
from meanfield.mckean_vlasov.density.level import NarrowCellsError


class Factors(NamedTuple):
    """Factors on the default half-width of the cells and on the default number of steps."""

    widening: float = 1.0
    refinement: float = 1.0

    def answering(self, fault: BlowUpError | None, wider: float) -> Factors | None:
        """Factors of the next attempt after a fault; None where no factors would avoid it.

        Parameters
        ----------
        fault : BlowUpError or None
            Why the last attempt ended.
        wider : float
            Factor on the half-width if its cells were too narrow.
        """
        if isinstance(fault, NarrowCellsError):
            return self._replace(widening=wider * self.widening)
        if isinstance(fault, LongStepsError):
            return self._replace(refinement=4.0 * self.refinement)  # steps were too long for the dynamics
        return None
