"""Condensation: under a prior whose pull is bounded, and little noise, the norm goes to ever fewer, larger weights."""

from meanfield.mckean_vlasov.condensation.coarsening import Coarsening, coarsening
from meanfield.mckean_vlasov.condensation.pull import critical_weight
from meanfield.mckean_vlasov.condensation.recognition import Condensate, condensate
from meanfield.mckean_vlasov.condensation.threshold import critical_diffusion, held_norm
from meanfield.mckean_vlasov.condensation.wording import following_time, with_condensate

__all__ = [
    "Coarsening",
    "Condensate",
    "coarsening",
    "condensate",
    "critical_diffusion",
    "critical_weight",
    "following_time",
    "held_norm",
    "with_condensate",
]
