"""Order parameters under a momentum 1 - b/N, whose velocity lasts as long as learning takes.

In units in which w moves by b p/N the velocity of a step is p <- (1 - b/N) p + x F/sqrt(N) - tau phi(w)/N. In the limit
it is one more vector, and the one that has the noise, and w goes along it on the sphere:

    dp = (u.gamma_u + gamma_w w - tau phi(w) - b p) dt + sqrt(Lambda) dB,      dw = b (p - E[w p] w) dt.

gamma_u = -g. gamma_w is twice the derivative of tau <s1 s2> by the variance of what the features do not explain of a
sample, which without augmentation noise is gamma_w = tau <D^2 (s1 s2)> of `closures.closure`. With a linear phi the
overlaps q, E[u p], E[w p] and E[p^2] close. Source: update_rules.md, section 8.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.problem import Problem, without_velocity
from meanfield.mckean_vlasov.order_parameters import TOLERANCE, as_order_parameters, outside_ball
from meanfield.numerics.ode import solve_ode
from meanfield.problems.base import schedules_of
from meanfield.results.solved import Solved
from meanfield.typing import FloatArray


def check_velocity(problem: Problem) -> None:
    """Refuse problems whose overlaps with a velocity that lasts are not known.

    Raises
    ------
    InputError
        If views have noise, something changes in time, or weights are averaged.
    """
    b, remedy = problem.model.momentum_rate, "use SGD, or remove either"
    changing = "phases" if problem.phases is not None else next(iter(schedules_of(problem)), "")
    average = problem.model.average_rate
    for found, why in (
        ("augmentation" if problem.noise_covariance.any() else "", "views are the samples themselves"),
        (changing, "nothing changes in time"),
        ("" if average is None else f"model.average_rate = {average:g}", "weights are not averaged"),
    ):
        if found:
            raise InputError(f"{found} with model.momentum_rate = {b:g}: overlaps are known where {why}; {remedy}")


def order_parameters_with_velocity(problem: Problem, b: float) -> Solved:
    """Order parameters as `solve_order_parameters` returns them, without fluctuations.

    Parameters
    ----------
    problem : Problem
        That passes `check_velocity`, with a prior with linear phi.
    b : float
        Rate at which the velocity is forgotten.
    """
    resting = without_velocity(problem)
    closure = Closure(resting)
    limit, d1 = limit_of(resting, closure), len(problem.features)
    tau, pull = resting.model.learning_rate, resting.model.learning_rate * float(resting.prior.force(np.ones(1))[0])

    def rate(_: float, y: FloatArray) -> FloatArray:
        q, along, inward, square = y[:d1], y[d1:-2], y[-2], y[-1]  # q, E[u p], E[w p] and E[p^2]
        g, diffusion = closure(q)
        of_w = tau * closure.brackets(q)[0] - pull  # what w does to p, the prior included
        moves = b * (along - inward * q), of_w * q - g - b * along
        outward = of_w - q @ g
        return np.array(
            [
                *moves[0],
                *moves[1],
                outward + b * (square - inward - inward**2),
                diffusion + 2.0 * (of_w * inward - along @ g - b * square),
            ]
        )

    start = np.append(problem.initial_overlap, np.zeros(d1 + 2))
    outside = outside_ball(limit)
    solution = solve_ode(
        rate,
        start,
        limit.times,
        TOLERANCE,
        check=lambda t, y: outside(t, y[:d1]),
        label="order parameters",
        interruptible=True,
    )
    return as_order_parameters(limit, replace(solution, values=solution.values[:, :d1]))
