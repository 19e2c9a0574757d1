"""Work that a solution may take altogether: trial runs, the search for nodes, all levels and what is shown of them."""

from __future__ import annotations

MOST_WORK = 4.2e8
"""Largest number of points times steps of a solution; they take some 25 seconds, 60 ns each."""

GRADED_WORK = 1.6
"""Work of a step of a graded point, of which xi and the share follow at every stage, in units of that of others."""

SPILLED, SPILLED_POINTS = 0.3, 2.5e5
"""Share of the work that is added once there are so many points that they do not stay in fast memory; in proportion to
their number below."""

CALL_WORK = 1e4
"""Points times steps that take as long as a closure in Python, some milliseconds."""


PILOT_TILES = 20
"""Tiles of a closure that a pilot may make; one takes a hundred closures, up to a tenth of a second."""


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
    steps_between_tiles : int or None
        Largest number of steps after which tiles that were made for them are counted; None if none are.
    """

    steps_between_tiles: int | None = None

    def __init__(self, work: float | None = None) -> None:
        self.left = MOST_WORK if work is None else work
        self.reserved = 0.0

    def reserve(self, work: float) -> None:
        """Keep this much, in place of what has been kept."""
        self.reserved = work

    def spend(self, work: float, tiles: int = 0) -> bool:
        """Take off work that was done, and return whether anything is left besides what is kept.

        Tiles of the closure that were made for it are free: a whole solution uses them many times.
        """
        self.left -= work
        return self.allows(0.0)

    def allows(self, work: float) -> bool:
        """Whether work that lies ahead would leave more than is kept."""
        return work + self.reserved < self.left


class PilotBudget(Budget):
    """Budget of a search that decides as one with the whole budget does, and ends after a share of it.

    Parameters
    ----------
    share : float
        Share of the work that is done.
    """

    steps_between_tiles = 4

    def __init__(self, share: float) -> None:
        super().__init__()
        self._most = share * MOST_WORK
        self._tiles = 0

    @property
    def spent(self) -> float:
        """Work that was done."""
        return MOST_WORK - self.left

    @property
    def tiled_out(self) -> bool:
        """Whether as many tiles were made as a pilot may make."""
        return self._tiles >= PILOT_TILES

    def spend(self, work: float, tiles: int = 0) -> bool:
        """Take off work that was done, and return whether neither the share nor the tiles have been used up."""
        self._tiles += tiles
        return super().spend(work) and self.spent < self._most and not self.tiled_out
