"""What contrastive problems assume of inputs (theory.md, section 1)."""

from __future__ import annotations

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem, check_one_channel
from meanfield.mckean_vlasov.drive import reference_of
from meanfield.samples.assumed import Assumed


def assumed_of(problem: Problem) -> Assumed:
    """Assumptions of a problem; see `meanfield.problems.family.Family.samples`."""
    check_one_channel(problem, "samples that are made problems of")
    start = reference_of(problem)
    return Assumed(
        noise=1.0,
        along=0.0,
        laws=start.hidden_laws,
        samples_per_time=float(start.model.batch_size),
        # The first steps with momentum are shorter than those that follow.
        squared_step=None
        if start.model.remembers
        else lambda: float(Closure(start, tabulated=False)(start.initial_overlap)[1]),
    )
