"""Predicted cost of a density."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DensityCost:
    """Predicted cost of a density.

    Parameters
    ----------
    seconds : float
    memory : float
        Bytes at the peak, besides what Python and its packages take.
    nodes, cells : int
        Numbers of nodes and cells of P in the result.
    warning : str
        Warning that the method fails, or will miss its accuracy, with a remedy; empty if neither is to be expected.
    """

    seconds: float
    memory: float
    nodes: int
    cells: int
    warning: str = ""
