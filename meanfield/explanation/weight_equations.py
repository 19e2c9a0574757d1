"""Equations that families share: named functions, and the density of a weight given its feature coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp

from meanfield.ensembles.momentum import HasMomentum
from meanfield.explanation.equations import Equation, Section
from meanfield.explanation.formulas import Table, dot, expectation, function_of, latex_of, named, rate_of, real
from meanfield.ingredients.formulas import ACTIVATIONS, PRIORS
from meanfield.ingredients.priors import PriorSettings
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.ingredients.user_functions import is_address

DEFAULTS = {"slope": sp.Rational(1, 100), "width": sp.Rational(1, 10)}
"""Parameters of activations and penalties where nothing is said."""

SIGMA, SLOPE, FORCE = named("sigma", r"\sigma"), named("slope", r"\sigma'"), named("phi", r"\varphi")


def activation_lines(
    network: Any, table: Table, functions: tuple[Any, Any] = (SIGMA, SLOPE), key: str = "model", mark: str = ""
) -> Iterator[Equation]:
    """Activation and slope of a network under a key, whose parameters have symbols that end in a mark."""
    given = f"{key}.activation", network.activation, f"{key}.activation_parameters", network.activation_parameters
    return with_slope(functions, *given, table, ACTIVATIONS, mark)


def with_slope(
    functions: tuple[Any, Any],
    key: str,
    name: str,
    path: str,
    numbers: Any,
    table: Table,
    formulas: dict[str, str],
    mark: str = "",
) -> Iterator[Equation]:
    """A function that a key names, with its parameters, whose symbols end in a mark, and its slope.

    A user's own has a name alone.
    """
    x = real("x")
    if name not in formulas:
        return table.named(latex_of(functions[0](x)), key, name)
    given = {each: table.known(each + mark, f"{path}.{each}", value, False) for each, value in numbers.items()}
    value = function_of(formulas[name], DEFAULTS | given, x)
    yield Equation(functions[0](x), value)
    yield Equation(functions[1](x), sp.diff(value, x))


def force_line(prior: PriorSettings, table: Table) -> Equation | str:
    """Force phi of a prior, strength included."""
    w = real("w")
    if prior.name == "none":
        return r"No prior acts on the weights, $\varphi = 0$."
    strength = table.known("lambda", "prior.strength", prior.strength)
    if is_address(prior.name):
        table.named(r"\varphi_1", "prior.name", prior.name)
        return Equation(FORCE(w), strength * named("phi_1", r"\varphi_1")(w))
    given = {name: table.known(name, f"prior.parameters.{name}", value) for name, value in prior.parameters.items()}
    defaults = {"ratio": sp.Rational(1, 2), "width": sp.Rational(1, 2)}
    return Equation(FORCE(w), strength * function_of(PRIORS[prior.name], defaults | given, w))


def is_linear(prior: PriorSettings) -> bool:
    """Whether overlaps close under a prior; one that a result alone names is not looked up."""
    return prior.functions.linear if prior.at_hand else False


def density_section(prior: PriorSettings, tau: Any, features: int) -> Section:
    """Density of a weight whose norm is kept, given its feature coordinates; theory.md, section 2."""
    w, u, q, g, r, Lambda, G = real("w u q g r Lambda G")
    free = prior.name == "none"
    pull, work = (0, 0) if free else (tau * FORCE(w), tau * r)
    along = [u * g, q * g] if features == 1 else [dot(u, g), dot(q, g)]
    Gamma, P = (sp.Function(name)(w, u) for name in ("Gamma", "P"))
    return Section(
        "Density of a weight $w$ given its feature coordinates $u$",
        [
            Equation(latex_of(Gamma), G * w - along[0] - pull),
            Equation(G, along[1] + work - Lambda / 2),
            Equation(r"q", r"E[u w]" + r", \qquad r = E[w\,\varphi(w)]" * (not free)),
            Equation(
                r"\frac{\partial P}{\partial t}", Lambda / 2 * sp.Derivative(P, w, w) - sp.Derivative(Gamma * P, w)
            ),
        ],
    )


def overlap_section(prior: PriorSettings, tau: Any, features: int) -> Section:
    """Equation of the overlaps where the norm is kept; it closes if the prior is linear."""
    q, g, r, Lambda, u, w = real("q g r Lambda u w")
    both = q * g if features == 1 else dot(q, g)
    left = rate_of("q")
    if is_linear(prior):
        return Section("Order parameters", [Equation(left, q * (both - Lambda / 2) - g)])
    pull = tau * expectation(u * FORCE(w))
    return Section(
        "Order parameters",
        [
            Equation(left, q * (both + tau * r - Lambda / 2) - g - pull),
            "The last average asks for the density: the overlaps do not close.",
        ],
    )


def speed_lines(training: HasMomentum, table: Table) -> Iterator[Equation | str]:
    """What momentum makes of a flow f of all weights theta."""
    f, p = real("f p")
    if training.momentum_rate is not None:
        b = table.known("b", "training.momentum_rate", training.momentum_rate)
        yield r"With $f$ for the flow above, a velocity that lasts moves the weights:"
        yield Equation(r"\dot p", b * (f - p))
        yield Equation(r"\dot\theta", p)
        yield r"Where lengths are kept, $\dot\theta$ is what of $p$ is tangential."
    elif isinstance(training.momentum, Schedule) or training.momentum > 0.0:
        yield r"With $f$ for the flow above, momentum makes it"
        yield Equation(r"\dot\theta", f / (1 - table.known("mu", "training.momentum", training.momentum)))


def average_line(of: Any, average: Any, share: Any) -> Equation:
    """Step of a moving average of weights, by a share of its distance to them."""
    return Equation(average, average + share * (of - average), r"\leftarrow")
