"""Random starts without information: the time at which SGD escapes from q = 0, and the feature that wins."""

from meanfield.families.contrastive.random_starts.in_time import outcomes_in_time
from meanfield.families.contrastive.random_starts.outcomes import Outcomes, langevin_outcomes, limit_outcomes
from meanfield.families.contrastive.random_starts.separatrix import Separatrix, find_separatrix, selection_probability
from meanfield.families.contrastive.random_starts.start import EscapeLaw, RandomStart, escape_law, random_start

__all__ = [
    "EscapeLaw",
    "Outcomes",
    "RandomStart",
    "Separatrix",
    "escape_law",
    "find_separatrix",
    "langevin_outcomes",
    "limit_outcomes",
    "outcomes_in_time",
    "random_start",
    "selection_probability",
]
