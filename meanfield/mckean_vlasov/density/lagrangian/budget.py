"""Work that a solution may take altogether: trial runs, the search for nodes, all levels and what is shown of them."""

from __future__ import annotations

import time

MOST_WORK = 4.2e8
"""Largest number of points times steps of a solution; they take some 25 seconds, 60 ns each."""

GRADED_WORK = 1.6
"""Work of a step of a graded point, of which xi and the share follow at every stage, in units of that of others."""

SPILLED, SPILLED_POINTS = 0.3, 2.5e5
"""Share of the work that is added once there are so many points that they do not stay in fast memory; in proportion to
their number below."""

CALL_WORK = 1e4
"""Points times steps that take as long as a closure in Python, some milliseconds."""


class Budget:
    """Points times steps that a solution may still take, refused steps included; graded points count `GRADED_WORK`.

    Parameters
    ----------
    work : float, optional
        Budget to begin with, `MOST_WORK` if nothing is said.

    Attributes
    ----------
    left : float
        Negative once it is overdrawn.
    reserved : float
        Part of it that is kept for what comes last.
    is_pilot : bool
        Whether levels ask after every step, and call closures in place of making tiles of them for many levels.
    """

    is_pilot = False

    def __init__(self, work: float | None = None) -> None:
        self.left = MOST_WORK if work is None else work
        self.reserved = 0.0

    def reserve(self, work: float) -> None:
        """Keep this much, in place of what has been kept."""
        self.reserved = work

    def spend(self, work: float) -> bool:
        """Take off work that was done, and return whether anything is left besides what is kept."""
        self.left -= work
        return self.allows(0.0)

    def allows(self, work: float) -> bool:
        """Whether work that lies ahead would leave more than is kept."""
        return work + self.reserved < self.left


class PilotBudget(Budget):
    """Budget of a search that decides as one with the whole budget does, and ends after some processor seconds.

    Parameters
    ----------
    seconds : float
    """

    is_pilot = True

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._end = time.process_time() + seconds

    @property
    def spent(self) -> float:
        """Work that was done."""
        return MOST_WORK - self.left

    def spend(self, work: float) -> bool:
        """Take off work that was done, and return whether there are work and seconds left."""
        return super().spend(work) and time.process_time() < self._end
