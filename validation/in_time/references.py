"""Flows of problems in time by SciPy: the rates of constant problems, from one jump or bend to the next.

What numbers do in time is written here once more: the powers of the learning rate, the shares of batches, momentum.
Averages of constant numbers are those of the library, but for filters on points, which are written by their definition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import xarray as xr

import meanfield
from meanfield.families.alpha_contrastive.initial import common_weights
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.closures import Closure
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import make_system, observables, start_of, unpacked
from meanfield.families.latent_tree.ring_tables import tables_of
from meanfield.typing import FloatArray
from tests.references_in_time import THOUSANDTH, inside, integrated
from validation.in_time.cases import Case

Rate = Callable[[float, FloatArray], FloatArray]

HUNDREDTH = {"rtol": 1e-10, "atol": 1e-11}
"""Errors of steps that add up to a hundredth of the 1e-8 that is asked of flows whose rates take a millisecond."""


def solved(case: Case, rate: Rate, start: FloatArray, tolerances: dict[str, float]) -> FloatArray:
    """States at the output times."""

    def velocity(t: float, y: FloatArray, low: float, high: float) -> FloatArray:
        return rate(inside(t, low, high), y)

    found: FloatArray = integrated(velocity, start, case.base.time.outputs_at, case.corners, tolerances)
    return found


def at_phase(case: Case, make: Callable[[Any], Any], **fixed: Any) -> Callable[[float], Any]:
    """What is made of the problem of the phase at a time, whose numbers `fixed` replaces."""

    @cache
    def made(phase: int) -> Any:
        held = case.at(case.stops[phase] * (1.0 - 1e-9))
        return make(meanfield.with_values(case.base, held | fixed))

    return lambda t: made(case.phase(t))


def one_channel(case: Case) -> FloatArray:
    """Overlaps: the gain has the factor tau, and the noise of sampling tau^2."""
    closure = at_phase(case, partial(Closure, tabulated=False), **{"model.learning_rate": 1.0})

    def rate(t: float, q: FloatArray) -> FloatArray:
        tau = case.at(t)["model.learning_rate"]
        g, noise = closure(t)(q)
        return np.asarray(q * (tau * q @ g - 0.5 * tau**2 * noise) - tau * g)

    return solved(case, rate, case.base.initial_overlap, THOUSANDTH)


def two_channels(case: Case) -> FloatArray:
    """Overlaps q with the feature, and M_12 of the channels."""

    def rate(t: float, y: FloatArray) -> FloatArray:
        now = meanfield.with_values(case.base, case.at(t))
        M = np.array([[1.0, y[2]], [y[2], 1.0]])
        P, D, noise = ChannelClosure(now)(y[None, :2], M)
        tau = now.model.learning_rate
        n = tau * np.diag(D) + 0.5 * np.diag(noise)
        change = tau * (D + D.T) + noise - M * (n[:, None] + n)
        return np.append(tau * P[0] - y[:2] * n, change[0, 1])

    start = np.append(case.base.initial_overlap, case.base.initial_channel_overlap[0, 1])
    return solved(case, rate, start, HUNDREDTH)


def hidden_manifold(case: Case) -> FloatArray:
    """All order parameters along eigenvectors, from which Q, R and v are taken."""
    nodes = case.base.inputs.eigenvalues.nodes(2)
    system = at_phase(case, lambda problem: make_system(problem, nodes, 1))
    names = ("learning_rate", "output_learning_rate", "batch_size", "label_noise", "weight_decay")

    def rate(t: float, y: FloatArray) -> FloatArray:
        now, change = case.at(t), np.empty(len(y))
        system(t).training[:] = [now[f"training.{name}"] for name in names]
        rates(y, system(t), change)
        return change

    y = solved(case, rate, start_of(case.base, system(0.0)), THOUSANDTH)
    seen = (observables(system(0.0), unpacked(system(0.0), each)) for each in y)
    return np.array([[each[name].item() for name in "QRv"] for each in seen])


def alpha_contrastive(case: Case) -> FloatArray:
    """Filters, by the definition of the mean step of a batch over all pairs of points."""
    first = common_weights(case.base).filters

    def rate(t: float, y: FloatArray) -> FloatArray:
        now, w = case.at(t), y.reshape(first.shape)[0]
        data = now.get("data") or {name: getattr(case.base.data, name) for name in ("points", "probabilities")}
        x, p = np.array(data["points"]), np.array(data["probabilities"])
        h = np.tanh(w @ x.T)
        apart = h[:, :, None] - h[:, None]
        alpha = np.exp(-0.5 * np.mean(apart**2, axis=0) / now["importance.temperature"])
        share = (1.0 - 1.0 / now["training.batch_size"]) * alpha * np.outer(p, p) * apart
        slope = (1.0 - h**2)[:, :, None] * x
        pull = 0.5 * np.einsum("kij,kijd->kd", share, slope[:, :, None] - slope[:, None])
        pull = pull - now.get("training.weight_decay", 0.0) * w
        pull = pull - np.sum(pull * w, axis=1, keepdims=True) * w
        return np.asarray(pull.ravel() / (1.0 - now["training.momentum"]))

    return solved(case, rate, first.ravel(), THOUSANDTH)


def latent_tree(case: Case) -> FloatArray:
    """All weights."""
    tables, start = tables_of(case.base), case.base.initial_weights

    def rate(t: float, y: FloatArray) -> FloatArray:
        now: Any = meanfield.with_values(case.base, case.at(t))
        gradient = tables.loss_and_gradient(start.like(y), contrast=now.contrast)[1]
        return np.asarray(-gradient.vector)

    return solved(case, rate, start.vector, HUNDREDTH)


def update_rule(case: Case) -> FloatArray:
    """R and Q of a perceptron under weight decay, by averages in closed form over inputs of variance eta."""
    mean = 1.0 / np.sqrt(2.0 * np.pi)  # of a normal number that is positive, and else 0

    def rate(t: float, y: FloatArray) -> FloatArray:
        now, (R, Q) = case.at(t), y
        eta, m = now.get("data.noise", 1.0), now["model.batch_size"]
        tau, decay = now["model.rule_parameters.rate"], now["prior.strength"]
        rho = R / np.sqrt(Q)
        pull = tau * np.sqrt(eta) * mean * (1.0 - rho)
        noise = tau**2 * eta * np.arccos(rho) / (np.pi * m)
        return np.array([pull - decay * R, noise - 2.0 * np.sqrt(Q) * pull - 2.0 * decay * Q])

    return solved(case, rate, np.array([case.base.initial_R.item(), case.base.initial_Q.item()]), THOUSANDTH)


def numbers_of(result: xr.Dataset) -> FloatArray:
    """Numbers of a result as the functions above return them, shape (times, numbers)."""
    parts = {
        "contrastive": [result.get("q"), result["M"][:, 0, 1] if "M" in result else None],
        "hidden_manifold": [result.get(name) for name in "QRv"],
        "update_rule": [result.get(name) for name in "RQ"],
    }.get(result.attrs["family"], [result.get("weights")])
    return np.column_stack([part.values.reshape(len(part), -1) for part in parts if part is not None])
