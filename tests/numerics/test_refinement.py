"""Refinement of a number with an error of order one, its budget and its interruption; retries that end in time."""

import math

import numpy as np
import pytest

from meanfield.numerics.refinement import change_of, doublings, missed, refine, retry


def solve(level):
    return {"x": np.array([1.0, 1.0 + 1.0 / level])}


def compare(before, after):
    return change_of(before, after, ["x"])


def test_levels_are_solved_until_two_agree_and_the_change_bounds_the_error():
    found = refine(doublings(1, 1000), solve, compare, 0.02)
    assert found.level == 64  # the first with 1/n, what it changes, below the tolerance
    assert found.before is not None
    assert found.before["x"].tolist() == [1.0, 1.0 + 1 / 32]
    assert found.change.errors["x_error"].tolist() == [1 / 64, 1 / 64]  # the largest of both times
    assert abs(found.result["x"] - 1.0).max() <= found.change.largest == 1 / 64


def test_no_level_is_asked_for_after_agreement_or_beyond_the_budget():
    asked = []

    def levels(most):
        for level in doublings(1, most):
            asked.append(level)
            yield level

    assert refine(levels(8), solve, compare, 1e-9).level == asked[-1] == 8
    assert refine(levels(math.inf), solve, compare, 0.3).level == asked[-1] == 4


@pytest.mark.parametrize("raised", [True, False])
def test_an_interruption_leaves_the_level_before_if_its_error_is_known(raised):
    def interrupted_at(last):
        def stopped(level):
            if level == last and raised:
                raise KeyboardInterrupt
            return solve(level) | {"status": "interrupted" if level == last else "complete"}

        return refine(doublings(1, 64), stopped, compare, 1e-9, lambda result: result["status"])

    third = interrupted_at(8)
    assert third.interrupted
    assert (third.level, third.change.largest) == (4, 0.25)
    if raised:
        with pytest.raises(KeyboardInterrupt):
            interrupted_at(2)
    else:
        second = interrupted_at(2)  # as far as it came
        assert second.interrupted
        assert (second.level, second.change.largest) == (2, 0.5)


def test_a_failure_ends_the_search():
    assert refine(doublings(1, 64), solve, compare, 1e-9, lambda _: "failed: at t = 1").level == 1


def test_what_is_said_of_a_missed_tolerance():
    assert missed("q", 1e-3, "density.tolerance", 1e-3) == ""
    assert missed("q", 2e-3, "density.tolerance", 1e-3, "raise it, or go") == (
        "the error of q is estimated at 0.002, above density.tolerance = 0.001; raise it, or go"
    )
    assert missed("q", math.inf, "a.b", 1e-3) == "the error of q is unknown, and may be above a.b = 0.001; raise it"


def retried(better, settings=1):
    tried = []

    def attempt(settings):
        tried.append(settings)
        return 10 * settings

    return retry(attempt, settings, better), tried


def test_the_first_good_result_ends_it():
    assert retried(lambda settings, result: None if result >= 40 else 2 * settings) == (40, [1, 2, 4])
    assert retried(lambda settings, result: None) == (10, [1])


def test_settings_that_cannot_change_are_not_tried_twice():
    assert retried(lambda settings, result: min(2 * settings, 6)) == (60, [1, 2, 4, 6])


def test_the_next_settings_answer_to_what_went_wrong():
    def better(settings, result):
        return {10: 3, 30: 7, 70: None}[result]

    assert retried(better) == (70, [1, 3, 7])
