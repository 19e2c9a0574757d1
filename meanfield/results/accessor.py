"""Results at hand in xarray: `dataset.meanfield`, by xarray's own way for other packages to add to its Datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from meanfield.problems.method import resolve

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from meanfield.problems.base import Problem


@xr.register_dataset_accessor("meanfield")  # type: ignore[no-untyped-call]
class ResultAccessor:
    """What `dataset.meanfield` has: of any result, whether xarray or `meanfield.load` opened it.

    Parameters
    ----------
    dataset : xarray.Dataset
        A result of any method. One that is none is refused when something is asked of it.

    Examples
    --------
    >>> import meanfield
    >>> result = meanfield.solve_order_parameters(meanfield.load_problem("data/problems/no_prior.toml"))
    >>> result.meanfield.problem.model.learning_rate
    0.02
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    @property
    def problem(self) -> Problem:
        """Problem that it solves. Nothing that it names is opened or imported."""
        found: Problem = resolve("meanfield.results.result:Result").of(self._dataset).problem
        return found

    def plot(self) -> Figure:
        """Figure of it; see `meanfield.plotting.plot_result`."""
        figure: Figure = resolve("meanfield.plotting:plot_result")(self._dataset)
        return figure

    def verdict(self, *others: xr.Dataset | xr.DataTree) -> str:
        """AGREES, DIFFERS or CANNOT TELL, of it and other results; `meanfield.compare` says why."""
        return str(resolve("meanfield:compare")(self._dataset, *others).attrs["verdict"])

    def cite(self) -> str:
        """What to cite for it, as BibTeX; see `meanfield.cite`."""
        return str(resolve("meanfield:cite")(self._dataset))

    def _repr_html_(self) -> str:
        """Summary for a notebook, with formulas: how a comparison judges, or the equations of the problem."""
        return str(resolve("meanfield.report.content:summary")(self._dataset))

    def report(self, path: str | Path) -> None:
        """Write a page of HTML about it, as the command `report` does."""
        self._write("report", path)

    def explore(self, path: str | Path) -> None:
        """Write a page of HTML to move through it, as the command `explore` does."""
        self._write("explore", path)

    def _write(self, page: str, path: str | Path) -> None:
        resolve("meanfield.results.files:check_page_path")(path)
        text = resolve(f"meanfield.report:{page}")({str(self._dataset.attrs.get("method")): self._dataset})
        resolve("meanfield.process.atomic_files:save_text")(text, path)
