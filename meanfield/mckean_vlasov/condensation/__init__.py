"""Condensation: under a prior whose pull is bounded, and little noise, the norm goes to ever fewer, larger weights."""

from meanfield.mckean_vlasov.condensation.pull import Coarsening, coarsening, critical_weight
from meanfield.mckean_vlasov.condensation.recognition import Condensate, condensate, following_time, with_condensate
from meanfield.mckean_vlasov.condensation.threshold import critical_diffusion, held_norm, why_none

__all__ = [
    "Coarsening",
    "Condensate",
    "coarsening",
    "condensate",
    "critical_diffusion",
    "critical_weight",
    "following_time",
    "held_norm",
    "why_none",
    "with_condensate",
]
