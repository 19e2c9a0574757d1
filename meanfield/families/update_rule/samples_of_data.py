"""What problems of update rules assume of inputs (update_rules.md, section 1)."""

from __future__ import annotations

from meanfield.errors import InputError
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
        noise_key="data.noise",
        student_key="students",
    )
