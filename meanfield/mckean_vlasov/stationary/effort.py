"""How accurate averages over w are, what they cost, and what the search for stationary states had to leave out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from meanfield.mckean_vlasov.stationary.interpolation import ACCURACY
from meanfield.mckean_vlasov.stationary.panels import MOST_PANELS
from meanfield.mckean_vlasov.stationary.unit_norm import UNIT_NORM


class Accuracy(NamedTuple):
    """Accuracy of averages over w.

    Parameters
    ----------
    norm : float
        Largest deviation of E[w^2] from 1.
    averages : float
        Error of averages between the tilts at which densities are integrated, see `at_many`.
    fineness : float
        1, or more for narrower panels in w, or less for wider ones.
    one_sided : bool
        Whether derivatives of the closure are differences of one more value each, of order one.
    """

    norm: float = UNIT_NORM
    averages: float = ACCURACY
    fineness: float = 1.0
    one_sided: bool = False


REPORTED_ACCURACY = Accuracy()
"""Accuracy of the states that are reported."""


@dataclass
class Effort:
    """Work that equations with common limits have done so far.

    Parameters
    ----------
    densities : int
        Number of densities that were integrated.
    cut_short : bool
        Whether a search ended because it had taken too many of them.
    crowded : bool
        Whether no multiplier of the norm was found where densities take too many panels.
    lost : int
        Number of overlaps that solve the equations, but were not found when they were looked at again.
    rare : bool
        Whether no state was found though weights with rare u, between nodes, may carry one.
    """

    densities: int = 0
    cut_short: bool = False
    crowded: bool = False
    lost: int = 0
    rare: bool = False

    @property
    def warning(self) -> str:
        """Sentences about what may be missing; empty if nothing is."""
        said = [
            (
                self.cut_short,
                f"states may be missing: the search ended early, after {self.densities} densities, before new starts"
                " stopped to bring new states; fewer features, or more noise, make it shorter",
            ),
            (
                self.crowded,
                f"states may be missing: at some overlaps densities take more than {MOST_PANELS} panels in w, and no"
                " multiplier of the norm was found; a weaker prior or more noise takes fewer",
            ),
            (
                self.lost > 0,
                f"states may be missing: {self.lost} of the overlaps found, without counting their images, had no"
                " density of unit norm on finer nodes, or were not found there after many trials; more noise makes"
                " densities smoother",
            ),
            (
                self.rare,
                "states may be missing near q = 0: where few weights with a large |u| carry most of E[w^2], nodes in u"
                " do not resolve them; a weaker prior or more noise needs no such weights, and coordinates without"
                " tails, such as uniform or three_point ones, have none",
            ),
        ]
        return "; ".join(sentence for holds, sentence in said if holds)
