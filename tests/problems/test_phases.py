"""Phases: the problem of each, keys and times that they may have, and what knows them."""

import numpy as np
import pytest

import meanfield
from meanfield import InputError
from meanfield.problems.base import corners_of, schedules_of
from meanfield.problems.file import format_problem
from meanfield.problems.phases import phase_numbers, pieces_of
from meanfield.problems.problem_keys import value_of, with_value
from tests.example_problems import SMALL

THREE = """
[[phases]]
stop = 1.0

[[phases]]
stop = 2.0
set = { "model.learning_rate" = { schedule = "linear", start = 0.1, end = 0.2, duration = 1.5 } }

[[phases]]
stop = 3.0
set = { "features[0].hidden" = { law = "gaussian", second_moment = 2.0 }, "prior.name" = "l1", "prior.strength" = 0.5 }
"""


def with_phases(text=THREE):
    """Small problem until t = 3 with the text of its phases."""
    return meanfield.parse_problem(SMALL.replace("stop = 1.0", "stop = 3.0") + text)


def test_each_phase_goes_on_from_the_one_before():
    first, second, third = pieces_of(with_phases())
    assert [piece[:2] for piece in (first, second, third)] == [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]
    assert first.problem == meanfield.parse_problem(SMALL.replace("stop = 1.0", "stop = 3.0"))
    assert first.problem.prior == second.problem.prior
    assert second.problem.model == third.problem.model
    assert third.problem.features[0].hidden.law == "gaussian"
    assert (third.problem.prior.name, third.problem.prior.strength) == ("l1", 0.5)
    assert all(piece.problem.phases is None for piece in (first, second, third))


def test_the_problem_of_one_time_has_the_keys_of_its_phase():
    problem = with_phases()
    assert meanfield.at_time(problem, 0.999).model.learning_rate == 0.05
    assert meanfield.at_time(problem, 1.0).model.learning_rate == pytest.approx(0.1 + 0.1 / 1.5, rel=1e-15)
    assert meanfield.at_time(problem, 2.5).prior.strength == 0.5
    assert meanfield.at_time(problem, 3.0).prior.strength == 0.5
    assert phase_numbers(problem, np.array([0.0, 0.9, 1.0, 2.0, 3.0])).tolist() == [0, 0, 1, 2, 2]
    assert corners_of(problem) == (1.0, 1.5, 2.0)
    assert list(schedules_of(problem)) == ["phases[1].set.model.learning_rate"]


def test_phases_are_written_and_read_again():
    problem = with_phases()
    again = meanfield.parse_problem(format_problem(problem))
    assert again == problem
    assert hash(again) == hash(problem)
    assert pieces_of(again) == pieces_of(problem)
    assert "phases" not in format_problem(meanfield.parse_problem(SMALL))


def test_a_sweep_can_set_what_a_phase_sets():
    problem, key = with_phases(), "phases[2].set.prior.strength"
    assert value_of(problem, key) == 0.5
    assert pieces_of(with_value(problem, key, 0.7))[2].problem.prior.strength == 0.7
    assert pieces_of(with_value(problem, "phases[0].stop", 0.5))[1].start == 0.5


LAST = '"features[0].hidden" = { law = "gaussian", second_moment = 2.0 }, "prior.name" = "l1", "prior.strength" = 0.5'


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            "stop = 2.0",
            "stop = 1.0",
            r"phases\[1\]\.stop: 1 is no later than the phase before, which ends at 1; let stops",
        ),
        ("stop = 2.0", "stop = 2.0\nstart = 1.0", r"phases\[1\]: unknown key 'start'; did you mean 'set'"),
        (
            "stop = 3.0\n",
            "stop = 2.5\n",
            r"phases\[2\]\.stop: the last phase ends at 2\.5, and the run .* = 3; make them",
        ),
        (LAST, '"prior.nam" = "l1"', r"phases\[2\]\.set: .*no key 'prior\.nam'; did you mean 'prior\.name'"),
        (LAST, '"features[1].hidden" = 1.0', r"phases\[2\]\.set: the problem has no key 'features\[1\]\.hidden'; did"),
        (LAST, '"" = 1.0', r"phases\[2\]\.set: '' is no key; write it like prior\.strength"),
        (LAST, '"particles.dimension" = 10', r"phases\[2\]\.set: 'particles\.dimension' stays the same in all phases"),
        (LAST, '"features[0].coordinate.law" = "gaussian"', r"what may change: .*features\[\]\.hidden"),
        (
            LAST,
            "prior.strength = 1.0, model.batch_size = 9",
            r"'model' cannot be .*; write a key in quotes, \"model\.batch",
        ),
        (
            LAST,
            '"prior" = { name = "l2" }, "prior.name" = "l1"',
            r"phases\[2\]\.set: 'prior' sets 'prior\.name' as well",
        ),
        (
            LAST,
            '"features[0].hidden" = { law = "gausian" }',
            r"phases\[2\]\.set: features\[0\]\.hidden\.law = 'gausian'",
        ),
        (f"{{ {LAST} }}", '["prior.name"]', r"phases\[2\]\.set = \['prior\.name'\]: should be a table of keys"),
        ("end = 0.2", "end = -0.2", r"phases\[1\]\.set: model\.learning_rate: is -.* at t = 0\.[0-9]+ of its schedule"),
        (THREE, "[phases]\nstop = 3.0", r"^phases: should be a list in square brackets .*\[\[phases\]\]"),
    ],
)
def test_what_phases_cannot_be_is_refused(before, after, words):
    assert before in THREE
    with pytest.raises(InputError, match=words):
        with_phases(THREE.replace(before, after))


def test_methods_that_know_one_phase_say_what_to_give_them():
    problem = with_phases()
    with pytest.raises(InputError, match=r"phases: the method 'stationary states' knows one phase only"):
        meanfield.find_stationary_states(problem)
    meanfield.find_stationary_states(meanfield.at_time(problem, 3.0))
