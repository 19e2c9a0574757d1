"""Identity of a run: everything that decides its numbers. An unfinished run goes on only under the same one."""

from __future__ import annotations

from typing import NamedTuple

from meanfield.problems.base import Problem
from meanfield.problems.file import format_problem
from meanfield.results.made_by import MadeBy, changes, from_json, made_by, to_json


class Identity(NamedTuple):
    """Identity of a run.

    Parameters
    ----------
    text : str
        Such as the text of the problem.
    made_by : mapping
        Fingerprints of functions and files that the problem names, and the version of this package.
    """

    text: str
    made_by: MadeBy

    def with_format(self, *lines: str) -> Identity:
        """The same with lines before its text: names of formats in which a run is stored."""
        return self._replace(text="\n".join([*lines, self.text]))

    def written(self) -> str:
        """Text for a file."""
        return f"{self.text}\n{to_json(self.made_by)}\n"

    def differences(self, written: str) -> list[str] | None:
        """What another run was made by that left its identity in a file; None if it is of another problem.

        Parameters
        ----------
        written : str
            What stands in the file; in those of earlier versions no fingerprints.
        """
        text, _, last = written.removesuffix("\n").rpartition("\n")
        before = from_json(last)
        if (written if before is None else text) != self.text:
            return None
        return changes(before, self.made_by)


def identity_of(problem: Problem) -> Identity:
    """Identity of a run of a problem, as what it names is now."""
    return Identity(format_problem(problem), made_by(problem))
