"""What problems of update rules assume of inputs (update_rules.md, section 1)."""

from __future__ import annotations

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.order_parameters.equations import Equations
from meanfield.families.update_rule.order_parameters.errors import chosen_rule
from meanfield.families.update_rule.places import FEATURES
from meanfield.families.update_rule.problem import Problem
from meanfield.mckean_vlasov.drive import reference_of
from meanfield.samples.assumed import Assumed


def assumed_of(problem: Problem) -> Assumed:
    """Assumptions of a problem; see `meanfield.problems.family.Family.samples`.

    Raises
    ------
    InputError
        If inputs are of another kind than white noise with hidden variables along features.
    """
    data = problem.data
    for key, given in (
        ("draws", problem.draws),
        ("data.classes", data.classes),
        ("data.spectrum", data.spectrum),
        ("data.scale", data.scale),
        ("data.observed", data.observed if data.observed < 1.0 else None),
    ):
        if given is not None:
            raise InputError(
                f"{key}: samples are held against white noise with hidden variables along features, in one kind of "
                "draw; leave it out"
            )
    start = reference_of(problem)
    return Assumed(
        noise=start.data.noise,
        along=0.0 if data.signal == "orthogonal" else start.data.noise,
        laws=() if data.signal == "none" else start.laws_of(FEATURES),
        samples_per_time=float(start.model.batch_size),
        squared_step=lambda: _squared_step(start),
        squared_length=float(np.trace(start.initial_Q)),
        noise_key="data.noise",
        student_key="students",
    )


def _squared_step(problem: Problem) -> float:
    """Mean of |dw|^2 of a step at the start, over all students."""
    equations = Equations(problem)
    places = [(0.0, equations.start)]
    rules = equations.rules(equations.choose(places, 0.01, {}), chosen_rule)  # it is held against factors of sqrt(N)
    return float(np.trace(equations.averages(0, rules)(*places[0])[0].Lambda))
