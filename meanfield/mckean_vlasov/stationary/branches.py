"""Equations of stationary states for every value of a parameter, as continuation takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary.effort import Effort
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations, coordinates_of
from meanfield.mckean_vlasov.stationary.search import all_overlaps, in_order, resolved
from meanfield.mckean_vlasov.stationary.variables import state_variables
from meanfield.numerics.continuation import CachedEquations
from meanfield.typing import FloatArray


class StationaryBranches(CachedEquations[StationaryEquations]):
    """The equations of stationary states for every value of a parameter.

    Parameters
    ----------
    limit_at : callable
        The limit at a value of the parameter.
    limits : tuple of float
        The range of the parameter, increasing.

    Attributes
    ----------
    effort : Effort
        Its warning says what may be missing.
    """

    def __init__(self, limit_at: Callable[[float], Limit], limits: tuple[float, float]) -> None:
        super().__init__(limits)
        self._limit_at = limit_at
        self._rung = 0
        self.effort = Effort()

    def make(self, p: float, latest: StationaryEquations | None) -> StationaryEquations:
        """Equations at a value of the parameter; the latest ones give an estimate of the multiplier."""
        limit = self._limit_at(p)
        made = StationaryEquations(limit, coordinates_of(limit, self._rung), effort=self.effort)
        made.hint = latest.hint if latest else None
        return made

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """Residual F and its Jacobian dF/dq."""
        return self.at(p)(x)

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """All overlaps; at the ends of the range with nodes that resolve them as far as branches can afford."""
        if p not in self.limits:
            return all_overlaps(self.at(p), known)
        equations, orbits = resolved(self._limit_at(p), self.effort)
        needed = min(equations.coordinates.rung, 2)  # `quadrature_error` says what error these nodes leave
        if needed > self._rung:
            self._rung = needed
            self.forget()
        return sorted((q for orbit in orbits for q in orbit.images), key=in_order)

    def variables(self, x: FloatArray, p: float) -> dict[str, Any] | None:
        """The variables of the state at a root; None where its density cannot be normalised."""
        equations = self.at(p)
        state = equations.state(x)
        return None if state is None else state_variables(equations, state)
