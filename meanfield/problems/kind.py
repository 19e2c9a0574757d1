"""Kinds of results as data: which variables they hold, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from meanfield.problems.variable import FITTED, Variable

NO_INDICES: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Kind:
    """Declaration of a kind of results: its variables, and how it is shown.

    Parameters
    ----------
    title : str
        Title of such results, for reports.
    variables, optional : tuple of str
        Names of variables that it must hold, and that it may hold besides.
    leading : str
        The dim of results that are not in time, such as `state`, in place of `time`; empty for those of one state.
    made_by : str
        The function of `meanfield` that returns it, for the documentation; by default the verb of its method.
    check : str
        "module:function" of Dataset and problem, which yields what is wrong with numbers that belong together.
    figure, numbers, notes : str
        "module:function" of a Dataset, which returns its Figure, yields its key numbers as (name, value), or yields
        lines of text. Without them a figure of all variables is drawn, and a report shows none.
    summary : str
        "module:function" of a Dataset, which returns the text that commands print; nothing is printed without it.
    charts : str
        "module:function" of a Dataset, which yields what a page to move through draws of it at each time besides curves
        and laws of weights; see `meanfield.report.charts.Chart`.
    at_end : str
        "module:function" of a result that says where runs end, which returns a Dataset of another kind with what is
        compared with them, at the last time.
    accuracy : float, optional
        Largest error of its compared variables, where the method fixes it and results do not state it.
    stands_alone : str
        Why its results are compared with none, in words, although they hold compared variables in time.
    """

    title: str
    variables: tuple[str, ...]
    optional: tuple[str, ...] = ()
    leading: str = "time"
    made_by: str = ""
    check: str = ""
    figure: str = ""
    numbers: str = ""
    notes: str = ""
    summary: str = ""
    charts: str = ""
    at_end: str = ""
    accuracy: float | None = None
    stands_alone: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all variables that it may hold."""
        return (*self.variables, *self.optional)

    def dims(
        self, variable: Variable, indices: Mapping[str, str] = NO_INDICES, held: Mapping[Any, int] = NO_INDICES
    ) -> tuple[str, ...]:
        """Dims of a variable in results of this kind, without optional ones.

        Parameters
        ----------
        variable : Variable
        indices : mapping of str to str
            Dims that have the name of their index; see `Family.indices`.
        held : mapping of str to int
            Dims that the problem has, with their sizes; of the last dims of a variable those of several are there.
        """
        if variable.index_of in indices:
            return (indices[variable.index_of],)
        dims = tuple(indices.get(dim, self.leading if dim == "time" else dim) for dim in variable.dims)
        return tuple(dim for dim in dims if dim) + variable.behind(held)


STATUS = Variable((), "complete, missing, or failed and why", words=True)

SWEEP = Kind(
    "many problems at once, over values of some of their keys",
    ("status",),
    made_by="run_sweep",
    figure="meanfield.plotting.results:plot_sweep",
    numbers="meanfield.report.key_numbers:of_a_sweep",
    notes="meanfield.sweep.merge:description_lines",
)

FIT = Kind(
    "numbers of the problem, estimated from runs",
    tuple(FITTED),
    leading="key",
    made_by="fit",
    figure="meanfield.plotting.results:plot_fit",
    summary="meanfield.fitting:format_fit",
    stands_alone="a fit holds numbers of the problem",
)
