"""Limit of training as N grows, for the density and stationary solvers of any family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meanfield.ingredients.laws import CoordinateLaw, ResidualLaw
    from meanfield.ingredients.prior_settings import PriorSettings
    from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Limit:
    """McKean-Vlasov equation of one weight w given its feature coordinates u.

    dw = (G w - u.g(q) - tau phi(w)) dt + sqrt(Lambda(q)) dB with q = E[u w] and the multiplier G that keeps
    E[w^2] = 1 (theory.md, section 2).

    Parameters
    ----------
    closure : callable
        q, shape (d1,) with |q| <= 1, to g, shape (d1,), and Lambda.
    learning_rate : float
        tau, the factor of the prior's force.
    prior : PriorSettings
        phi with its strength, and differences of its potential.
    coordinates : tuple of CoordinateLaw
        Laws of the feature coordinates u, one for each feature.
    initial_overlap : ndarray, shape (d1,)
        q(0).
    initial_residual : ResidualLaw
        Law of the part of a weight that is not along the features at t = 0.
    times : ndarray, shape (outputs,)
        Output times, increasing from 0.
    slower : str
        Remedy in messages against dynamics that is too fast: a family names its keys.
    steadier : str
        Remedy in messages against E[w^2] far from 1: a family names its keys.

    Notes
    -----
    A density asks for g and Lambda thousands of times; `meanfield.mckean_vlasov.closures` says how they are compiled.
    """

    closure: Callable[[FloatArray], tuple[FloatArray, float]]
    learning_rate: float
    prior: PriorSettings
    coordinates: tuple[CoordinateLaw, ...]
    initial_overlap: FloatArray
    initial_residual: ResidualLaw
    times: FloatArray
    slower: str = "lower the learning rate"
    steadier: str = "lower the learning rate or the noise"

    @cached_property
    def initial_work(self) -> float:
        """The work r at t = 0; NaN where it is not known (`meanfield.mckean_vlasov.density.start.initial_work`)."""
        from meanfield.mckean_vlasov.density.start import initial_work

        return initial_work(self)

    @cached_property
    def compiled_closure(self) -> tuple[Any, float]:
        """Closure by `meanfield.mckean_vlasov.closures.compiled_closure`; a table is made once for all solutions."""
        from meanfield.mckean_vlasov.closures import compiled_closure

        return compiled_closure(self.closure, len(self.coordinates))

    @cached_property
    def tiled_closure(self) -> tuple[Any, float]:
        """The same with `meanfield.mckean_vlasov.closure_tiles`, for paths that are followed many times."""
        from meanfield.mckean_vlasov.closure_tiles import tiled

        compiled, reach = self.compiled_closure
        return tiled(compiled, len(self.coordinates)), reach
