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
from meanfield.families.contrastive.limit import Stage, limit_of_stages, stages_along, stages_of
from meanfield.families.contrastive.problem import FACTORS, Problem, without_velocity
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.order_parameters import TOLERANCE, as_order_parameters, outside_ball
from meanfield.numerics.ode import Rate, solve_in_stretches
from meanfield.problems.base import schedules_of
from meanfield.problems.in_time import pieces_in_steps
from meanfield.results.solved import Solved
from meanfield.typing import FloatArray


def check_velocity(problem: Problem) -> None:
    """Refuse problems whose overlaps with a velocity that lasts are not known.

    Raises
    ------
    InputError
        If views have noise, laws of the data change smoothly in time, or weights are averaged.
    """
    b, remedy = problem.model.momentum_rate, "use SGD, or remove either"
    pieces, average = pieces_in_steps(problem, besides=FACTORS), problem.model.average_rate
    smooth = next((key for each in pieces for key in schedules_of(each.problem) if key not in FACTORS), "")
    noisy = not smooth and any(each.problem.noise_covariance.any() for each in pieces)
    for found, why in (
        ("augmentation" if noisy else "", "views are the samples themselves"),
        (smooth, "it changes in steps (interpolation = 'step')"),
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
    stages, d1 = stages_of(without_velocity(problem)), len(problem.features)
    limit = limit_of_stages(stages)
    outside, times = outside_ball(limit), limit.times
    stretches = [
        (np.unique([low, *times[(times >= low) & (times <= high)], high]), _rate_in(low, high, stage, phase, b))
        for low, high, stage, phase in stages_along(stages, limit, float(times[-1]))
    ]
    solution = solve_in_stretches(
        stretches,
        np.append(problem.initial_overlap, np.zeros(d1 + 2)),
        times,
        TOLERANCE,
        check=lambda t, y: outside(t, y[:d1]),
        label="order parameters",
        interruptible=True,
    )
    return as_order_parameters(limit, replace(solution, values=solution.values[:, :d1]))


def _rate_in(low: float, high: float, stage: Stage, phase: Limit, b: float) -> Rate:
    """Rate of change of q, E[u p], E[w p] and E[p^2] between two corners."""
    closure, drive, factors = stage.closure, phase.drive, phase.drive.room
    assert isinstance(closure, Closure), "laws of the data change in steps, which was checked"
    tau, pull = phase.learning_rate, phase.learning_rate * float(phase.prior.force(np.ones(1))[0])
    d1 = len(phase.coordinates)

    def rate(t: float, y: FloatArray) -> FloatArray:
        drive.fill(t, low, high, factors)
        q, along, inward, square = y[:d1], y[d1:-2], y[-2], y[-1]
        g, diffusion = closure(q)
        g, diffusion = factors[0] * g, factors[1] * diffusion
        of_w = factors[0] * tau * closure.brackets(q)[0] - factors[2] * pull  # what w does to p, the prior included
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

    return rate
