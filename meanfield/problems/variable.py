"""Declaration of a variable of results, from which they are built, checked, compared and described.

Those that the comparisons of all families hold stand here, too, with the words of verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal


@dataclass(frozen=True)
class Variable:
    """Declaration of a variable of results: its meaning, its dims, and the values that it may have.

    Parameters
    ----------
    dims : tuple of str
    long_name : str
        Meaning of the variable. All quantities are dimensionless.
    optional_dims : tuple of str
        Dims that may come before the others, such as `replica`.
    last_dims : tuple of str
        Dims that come behind the others in results of problems that have several of them, such as `channel`. A
        variable with such dims among `dims` exists only where they are.
    only, unless : tuple of str
        Dims that only some problems have: those without which it does not exist, and those with which it does not, as
        others take its place.
    range : (float, float)
        Smallest and largest value.
    gaps : {"allowed", "unfinished", "never"}
        Where values may be missing: anywhere, only in runs that failed or were interrupted, or nowhere.
    increasing : bool
        Whether values increase along its only dim.
    words : bool
        Whether it holds words instead of numbers.
    choices : tuple of str
        The words that there are; any, if none are given.
    compared : bool
        Whether `meanfield.compare` looks at its differences between results.
    conserved : (str, float), optional
        A quantity that should be constant: what its largest deviation is called, and the constant.
    needs : tuple of str
        Variables without which it says nothing.
    judged : bool
        Whether it is a distance of runs and a prediction that comparisons judge: beside it is the largest one that
        chance allows.
    bounded_by : str
        Error estimate whose sum for two results on the same grid is at least this distance of them if both are right.
    coordinate : bool
        Whether it says where other variables have their values, besides those that have the name of their only dim.
    index_of : str
        Dim whose places it tells apart. Where its other dims have a single entry it is the index of that dim, which
        then has its name: nodes in one feature coordinate u are a dim `u`, those in several a dim `node`.
    no_index_with : tuple of str
        Dims with which it is no such index, as its values occur once for each of theirs.
    bounds : str
        Variable with the edges of its cells, by the CF conventions.
    label : str
        Name of the number among the problem's `labels` that it repeats, such as `learning_rate`; a scalar coordinate.
    """

    dims: tuple[str, ...]
    long_name: str
    optional_dims: tuple[str, ...] = ()
    last_dims: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    range: tuple[float, float] = (-inf, inf)
    gaps: Literal["allowed", "unfinished", "never"] = "allowed"
    increasing: bool = False
    words: bool = False
    choices: tuple[str, ...] = ()
    compared: bool = False
    conserved: tuple[str, float] | None = None
    needs: tuple[str, ...] = ()
    judged: bool = False
    bounded_by: str = ""
    coordinate: bool = False
    index_of: str = ""
    no_index_with: tuple[str, ...] = ()
    bounds: str = ""
    label: str = ""

    @property
    def in_time(self) -> Variable:
        """The variable in results in time, where it also has values without."""
        return replace(self, dims=("time", *self.dims)) if "time" in self.optional_dims else self

    def behind(self, sizes: Mapping[Any, int]) -> tuple[str, ...]:
        """Last dims of which there are several, by the sizes of all dims."""
        return tuple(dim for dim in self.last_dims if sizes.get(dim, 1) > 1)

    @property
    def attributes(self) -> dict[str, str]:
        """CF attributes. Numbers without a unit have no `units`: CF allows it, and plots show no "[1]"."""
        return {"long_name": self.long_name} | ({"bounds": self.bounds} if self.bounds else {})


def recorded(dims: tuple[str, ...], long_name: str, **more: Any) -> Variable:
    """What predictions and every replica of SGD have at output times, as far as they come."""
    return Variable(dims, long_name, optional_dims=("replica",), gaps="unfinished", **more)


def statistics_of(name: str, row: Variable) -> dict[str, Variable]:
    """Mean, covariance and quantiles over replicas of a variable in time; dims that occur twice are marked by _."""
    what = row.long_name.partition(",")[0]
    dims = row.dims
    again = list(row.dims)
    for dim in row.dims[1:]:
        while dim in again:
            dim += "_"
        again.append(dim)
    spread = "covariance" if len(dims) > 1 else "variance"
    return {
        f"{name}_mean": Variable(dims, f"mean of the {what} over replicas", gaps="unfinished"),
        f"{name}_{spread}": Variable(tuple(again), f"N times the {spread} of the {what} over replicas"),
        f"{name}_quantile": Variable(("quantile", *dims), f"quantile of the {what} over replicas", gaps="unfinished"),
    }


def averages_of(
    declared: Mapping[str, Variable], names: Iterable[str], ends: Iterable[str] = ("",)
) -> dict[str, Variable]:
    """Variables of moving averages of weights: `loss_average` from `loss`, `loss_average_mean` with the end `_mean`."""
    known = {f"{name}_average{end}": declared[name + end] for name in names for end in ends}
    return {name: replace(each, long_name=f"{each.long_name}, of averaged weights") for name, each in known.items()}


COUNTED = {
    "bounds": "edge of a cell, lower then upper",
    "coordinate": "place in a vector of weights",
    "node": "quadrature node",
    "point": "point of a branch",
    "replica": "replica, a run of its own",
}
"""Things that coordinates count from 0 in results of many families; see `Family.counted`."""


def counting(dim: str, words: Mapping[str, str]) -> Variable:
    """Coordinate that counts the places of a dim from 0, with the words that a family or all families have for it."""
    first = dim.rstrip("_")
    what = words.get(first) or COUNTED.get(first) or first.replace("_", " ")
    again = ", once more" if dim != first else ""
    return Variable((dim,), f"{what}{again}, counted from 0", gaps="never", increasing=True)


AGREES, DIFFERS, CANNOT_TELL = VERDICTS = ("AGREES", "DIFFERS", "CANNOT TELL")
"""Words for the outcome of a comparison."""

BY_ROTATIONS, BY_STANDARD_ERRORS, BY_STATED_ERRORS = "rotations", "standard errors", "stated errors"

TESTS = (BY_ROTATIONS, BY_STANDARD_ERRORS, BY_STATED_ERRORS, "nothing")
"""What judges a pair: rotations of its runs, standard errors of means over runs, or errors that predictions state."""

PAIR = Variable(("pair",), "the two results that are compared: first - second", words=True)

JUDGEMENT = {
    "verdict": Variable(("pair",), "whether the two results agree", words=True, choices=VERDICTS),
    "p_value": Variable(
        ("pair",), "share of comparisons of true pairs that show a difference as unlikely as this", range=(0.0, 1.0)
    ),
    "reason": Variable(("pair",), "what decides it, and what to change", words=True),
    "left_out": Variable(("pair",), "what is not compared, and why", words=True),
    "test": Variable(("pair",), "what judges", words=True, choices=TESTS),
}

FITTED = {
    "key": Variable(("key",), "what was estimated, a key of the problem", words=True),
    "estimate": Variable(("key",), "its most likely value"),
    "lower": Variable(("key",), "lower end of its 95 % interval"),
    "upper": Variable(("key",), "upper end of its 95 % interval"),
    "estimate_covariance": Variable(("key", "key_"), "covariance of the estimates"),
    "part": Variable(("part",), "what is held against the fitted limit: means over runs, or their scatter", words=True),
    "chi_square": Variable(("part",), "chi^2 about the fitted limit", range=(0.0, inf)),
    "degrees": Variable(("part",), "degrees of freedom of that chi^2", range=(1.0, inf)),
    "chance": Variable(("part",), "share of true limits with a chi^2 as unlikely as this", range=(0.0, 1.0)),
}
"""Variables of fits to runs, of all families that have some."""
