"""Starts of runs have their place in verdicts: runs of a start of their own are not held against one that is drawn."""

from functools import cache

import meanfield
from meanfield.comparison.inputs import different_starts
from meanfield.problems.known_families import find_family
from meanfield.problems.problem_keys import with_values
from meanfield.results.result import Result
from tests.families.alpha_contrastive.problems import kernel, problem

CHANGES = {  # small steps, and the drift of such batches: moments of equal starts know both
    "population.finite_batch": True,
    "training.learning_rate": 0.005,
    "particles.replicas": 8,
    "particles.seed": 1,
}


@cache
def solved(method, **changes):
    example = meanfield.load_problem(find_family("alpha_contrastive").example_path)
    given = with_values(example, CHANGES | {f"particles.{key}": value for key, value in changes.items()})
    return meanfield.solve(given, method)


def test_one_draw_is_not_blamed_for_its_distance_from_others():
    """Eight runs that each draw their start differ from the flow of one draw by more than chance: 5 of 12 seeds."""
    flow, own = solved("population"), solved("particles")
    found = meanfield.compare(flow, own)
    assert found.attrs["verdict"] == "CANNOT TELL"
    reason = str(found["reason"].values[0])
    assert "may be that of the starts" in reason
    assert "set particles.common_start = true." in reason
    other = Result.of(solved("particles", seed=5))
    assert "true, and give both the same particles.seed" in different_starts(Result.of(flow), other)
    common = solved("particles", common_start=True)
    assert (common["weights"].isel(time=0) == flow["weights"].isel(time=0)).all()
    assert meanfield.compare(flow, common).attrs["verdict"] == "AGREES"


def test_a_difference_of_equal_starts_is_one():
    flow, common = solved("population"), solved("particles", common_start=True)
    moved = flow.assign(energy=1.2 * flow["energy"])
    assert meanfield.compare(moved, common).attrs["verdict"] == "DIFFERS"


def test_which_starts_differ():
    given = problem(
        "quadratic",
        importance=kernel("gaussian", 0.3),
        filters={"count": 2, "start": {"law": "points", "values": [[1.0, 0.0], [0.6, 0.8]]}},
        time={"stop": 0.1, "outputs": 2},
        training={"batch_size": 4},
        particles={"replicas": 2},
    )
    flow, own, common, other = (
        Result.of(each)
        for each in (
            solved("population"),
            solved("particles"),
            solved("particles", common_start=True),
            solved("particles", common_start=True, seed=5),
        )
    )
    density = Result.of(solved("density"))
    assert different_starts(own, density) == different_starts(flow, common) == ""
    assert "particles.common_start = false" in different_starts(density, common)
    assert "hold each against runs" in different_starts(flow, density)
    assert "give both the same particles.seed" in different_starts(flow, other)
    assert "particles.common_start = false" in different_starts(own, common)
    assert not different_starts(*(Result.of(meanfield.solve(given, method)) for method in ("population", "particles")))


def test_a_common_start_leaves_the_numbers_of_batches():
    """Replica 0, which draws that start itself, is the same with both values of the key."""
    own, common = solved("particles"), solved("particles", common_start=True)
    assert (own["weights"][0] == common["weights"][0]).all()
    assert (own["weights"][1, 0] != common["weights"][1, 0]).any()
