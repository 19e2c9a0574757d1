"""Closures q -> (g, Lambda) in compiled code: those that a family compiles itself, and tables of all others.

Where the norm is free, closures are functions of q and E[w^2], and give G besides.

A family compiles its closure with a `NamedTuple` of what it needs besides q, a compiled function of both that is told
to `register_closure`, and an attribute `compiled` of the callable that holds the tuple and says how far it reaches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import fingerprint
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.compiled.separate_calls import generate_separate_call, separate_call_type
from meanfield.numerics.piecewise import Table, interpolate, panel_of, tabulate, values_at
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

ClosureFunction = Callable[[FloatArray], tuple[FloatArray, float]]
"""Function from q, shape (d1,), to g, shape (d1,), and Lambda."""


MOST_LIMITS = 64
"""Number of limits, one for each phase, whose compiled closures are kept."""


@runtime_checkable
class CompiledClosure(Protocol):
    """A closure whose family has compiled it."""

    @property
    def compiled(self) -> tuple[Any, float]:
        """Results of `compiled_closure`."""


_REGISTERED: dict[type, Any] = {}
"""Compiled functions of a closure and q, by the type of the closure."""


def register_closure(kind: type) -> Callable[[Any], Any]:
    """Decorate a compiled function of a closure, a `NamedTuple` of this type, and q, that gives g and then Lambda.

    numba tells types of tuples apart by their names and those of their fields: what is compiled for one of a name is
    called for all.

    Raises
    ------
    InputError
        If closures of this name have another function.
    """

    def register(function: Any) -> Any:
        known = next((known for other, known in _REGISTERED.items() if other.__name__ == kind.__name__), function)
        if known is not function and fingerprint(known) != fingerprint(function):
            raise InputError(
                f"compiled closures of the name {kind.__name__} have another function in this process; give the tuple "
                "another name, or restart Python if its module was edited"
            )
        _REGISTERED[kind] = function
        return function

    return register


@intrinsic
def closure_values(typing_context, closure, q):  # type: ignore[no-untyped-def]
    """Values of g, then Lambda, in compiled code, by the function that is registered for closures of this type."""
    known = getattr(closure, "instance_class", type(None))
    if known not in _REGISTERED:
        return None
    function = types.Dispatcher(_REGISTERED[known])

    # Numba's `overload` would do, but compiles all that the function calls once more.
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return generate_separate_call(context, builder, function, signature.args, arguments)

    return separate_call_type(typing_context, function, (closure, q)), generate


class TabulatedClosure(NamedTuple):
    """g and Lambda of one feature as functions of arcsin q, in which those of sqrt(1 - q^2) are smooth, too."""

    table: Table


@register_closure(TabulatedClosure)
@numba.njit(cache=True, nogil=True, error_model="numpy")
def tabulated_values(closure, q):  # type: ignore[no-untyped-def]
    """Values of g and Lambda from a table; see `closure_values`."""
    result = np.empty(2)
    angle = math.asin(min(max(q[0], -1.0), 1.0))
    interpolate(closure.table, panel_of(closure.table, angle), angle, result)
    result[1] = max(result[1], 0.0)
    return result


def called_values(
    closure: ClosureFunction, q: FloatArray, norm: float = 1.0, features: int | None = None
) -> FloatArray:
    """Drift g and diffusion Lambda in one vector, by a call in Python; overlaps are put back into the ball.

    Raises
    ------
    InputError
        If g or Lambda has the wrong shape.
    """
    return _vector(*closure(_inside(q, norm, q.size if features is None else features)), features=q.size)


def values_of(phase: Limit, arguments: FloatArray) -> FloatArray:
    """Values of the closure of a phase in one vector, by a call in Python: g, Lambda and, where the norm is free, G.

    Parameters
    ----------
    arguments : ndarray
        See `Limit.arguments_of`.

    Raises
    ------
    InputError
        If one of them has the wrong shape.
    """
    features = len(phase.coordinates)
    if not phase.free_norm:
        return called_values(phase.closure, arguments, phase.initial_norm, features)
    norm = max(float(arguments[-1]), 1e-12)  # rounding may leave none
    g, diffusion, growth = phase.closure(_inside(arguments[:-1], norm, features), norm)
    return np.append(_vector(g, diffusion, features=arguments.size - 1), float(growth))


def _inside(q: FloatArray, norm: float, features: int) -> FloatArray:
    """Overlaps that weights of a norm can have."""
    found, own = q.copy(), q[:features]
    length, most = math.sqrt(own @ own), math.sqrt(norm)
    if length > most:
        found[:features] = most * (own / length)
    return found


def _vector(g: FloatArray, diffusion: float, features: int) -> FloatArray:
    values = np.append(np.asarray(g, dtype=float), float(diffusion))
    if values.shape != (features + 1,):
        raise InputError(
            f"closure: g has shape {np.shape(g)} for {features} feature(s); return an array of shape ({features},) and "
            "a number"
        )
    return values


def coefficients_along(limit: Limit, arguments: FloatArray) -> FloatArray:
    """Drift g and diffusion Lambda at the output times, shape (outputs, overlaps + 1); NaN where the overlaps are.

    Parameters
    ----------
    arguments : ndarray, shape (outputs, overlaps), or (outputs, overlaps + 1) where the norm is free
    """
    d1 = limit.overlaps

    def along(phase: Limit, at: slice) -> FloatArray:
        found = np.full((len(limit.times[at]), d1 + 1), np.nan)
        for i, (time, row) in enumerate(zip(limit.times[at].tolist(), arguments[at], strict=True)):
            if np.all(np.isfinite(row)):
                found[i] = coefficients_at(phase, time, row)[: d1 + 1]
        return found

    return limit.along(along)


def coefficients_at(phase: Limit, time: float, arguments: FloatArray) -> FloatArray:
    """Drift g, diffusion Lambda and, where the norm is free, G of a phase at a time, in one vector."""
    of_g, of_diffusion, _ = phase.drive.at(np.array([time]))[0].tolist()
    factors = np.full(phase.judged, of_g)
    factors[phase.overlaps] = of_diffusion
    return np.asarray(values_of(phase, arguments) * factors)


def values_at_time(phase: Limit, time: float, arguments: FloatArray) -> FloatArray:
    """Values of the closure of a phase at a time, without factors of its drive."""
    phase.drive.at(np.array([time]))  # which sets the clock
    return values_of(phase, arguments)


def closures_of(closure: Any) -> tuple[ClosureFunction, ...]:
    """Those of some times of which a closure in time is made; one that does not change itself."""
    return getattr(closure, "closures", (closure,))


def compiled_closure(closure: ClosureFunction, features: int) -> tuple[Any, float]:
    """Closure for compiled code, and the largest |q| at which it is accurate.

    Parameters
    ----------
    features : int
        d1.

    Returns
    -------
    compiled : NamedTuple
        Closure of a type that is known to `closure_values`.
    reach : float
        Largest |q| at which `compiled` is accurate; beyond it the closure itself must be called. Infinite where a
        family has compiled all of it; -1 where it is always called, because there are several features, or it is not
        smooth enough for a table.
    """
    if isinstance(closure, CompiledClosure):
        return closure.compiled
    if features > 1:
        return NO_TABLE
    table, reach = tabulated_rows([closure])
    return TabulatedClosure(table), reach


@lru_cache(maxsize=MOST_LIMITS)
def compiled_closure_of(limit: Limit) -> tuple[Any, float]:
    """Results of `compiled_closure` for a limit; a table is made once for all solutions."""
    if limit.free_norm or limit.initial_norm != 1.0 or limit.spectrum is not None:
        return NO_TABLE  # tables are functions of E[u w] alone, up to |q| = 1
    return compiled_closure(limit.closure, len(limit.coordinates))


def tabulated_rows(closures: Sequence[ClosureFunction]) -> tuple[Table, float]:
    """Table of g and Lambda of closures of one feature over the widest range that is accurate, and its reach."""

    def rows(angles: FloatArray) -> FloatArray:
        return np.concatenate(
            [np.array([called_values(each, q) for q in np.sin(angles)[:, None]]).T for each in closures]
        )

    for end in (0.01, 0.1, 0.5):  # values of sqrt(1 - q^2): the smallest that works
        reach = math.acos(end)
        try:
            # Each of at most 60 panels takes 16 calls of the closure.
            groups = range(2 * len(closures))
            table = tabulate(rows, (), reach, "the closure", groups=groups, most_panels=60)
        except InputError:
            continue
        if _error(rows, table, reach) <= 1e-10:  # the tightest tolerance of q
            return table, math.sin(reach)
    return _no_table(2 * len(closures)), -1.0


def _error(rows: Callable[[FloatArray], FloatArray], table: Table, reach: float) -> float:
    """Largest error of the table, relative to the largest value of each row."""
    angles = reach * np.sin(np.arange(33) + 0.5)  # dense, and not symmetric about the origin
    exact, found = rows(angles), np.array([values_at(table, angle) for angle in angles.tolist()]).T
    largest = np.abs(exact).max(axis=1, keepdims=True)
    return float((np.abs(found - exact) / np.where(largest > 0, largest, 1.0)).max())


def _no_table(rows: int = 2) -> Table:
    """Placeholder for a missing table."""
    return tabulate(lambda x: np.zeros((rows, x.size)), (), 1.0, "nothing")


NO_TABLE = TabulatedClosure(_no_table()), -1.0
"""Closure that is always called."""
