"""Best learning rates of a run: constant, along a cosine, or a table of eight, found by direct search.

Rates are written here once more, so that searches share no code with the library.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from meanfield.typing import FloatArray

KINDS = ("constant", "cosine", "table")

Velocity = Callable[[float, FloatArray], FloatArray]
"""Rate and state to the change of the state in time."""


class Search(NamedTuple):
    """Search for rates.

    Parameters
    ----------
    velocity : callable
        Rate and state to the change of the state in time.
    start : ndarray
    stop : float
    loss : callable
        What is least in the best state at the end.
    first : float
        Constant rate at which the search begins; no rate is thirty times as large.
    """

    velocity: Velocity
    start: FloatArray
    stop: float
    loss: Callable[[FloatArray], float]
    first: float

    @property
    def nodes(self) -> FloatArray:
        """Times of a table."""
        return np.linspace(0.0, self.stop, 8)

    def rate_at(self, kind: str, x: FloatArray, t: float) -> float:
        """Rate at a time, of logarithms of rates."""
        rates = np.exp(x)
        if kind == "cosine":
            return float(rates[1] + (rates[0] - rates[1]) * np.cos(0.5 * np.pi * t / self.stop) ** 2)
        return float(rates[0] if kind == "constant" else np.interp(t, self.nodes, rates))

    def schedule(self, kind: str, x: FloatArray) -> dict[str, Any] | float:
        """The same as a problem has it."""
        rates = np.exp(x).tolist()
        if kind == "constant":
            return float(rates[0])
        if kind == "cosine":
            return {"schedule": "cosine", "start": rates[0], "end": rates[1], "duration": self.stop}
        return {"times": self.nodes.tolist(), "values": rates}

    def end(self, kind: str, x: FloatArray) -> FloatArray:
        """State at the end."""
        y = self.start
        for ends in itertools.pairwise(self.nodes):
            rate = lambda t, y: self.velocity(self.rate_at(kind, x, t), y)  # noqa: E731
            y = solve_ivp(rate, ends, y, rtol=1e-8, atol=1e-10).y[:, -1]
        return y

    def best(self) -> dict[str, FloatArray]:
        """Logarithms of the best rates of each kind, each searched from those of the kind before."""
        bounds = (-9.0, float(np.log(30.0 * self.first)))

        def from_(kind: str, start: FloatArray) -> FloatArray:
            loss = lambda x: self.loss(self.end(kind, np.clip(x, *bounds)))  # noqa: E731
            found = minimize(loss, start, method="L-BFGS-B", bounds=[bounds] * len(start), options={"eps": 1e-4})
            return np.asarray(found.x)

        constant = from_("constant", np.log([self.first]))
        cosine = from_("cosine", np.append(constant, constant - 2.0))
        table = [max(self.rate_at("cosine", cosine, t), 0.01 * self.first) for t in self.nodes]
        return {"constant": constant, "cosine": cosine, "table": from_("table", np.log(table))}
