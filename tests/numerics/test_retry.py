"""Retries end with the first good result, or where there are no better settings."""

from meanfield.numerics.retry import retry


def run(better, settings=1):
    tried = []

    def attempt(settings):
        tried.append(settings)
        return 10 * settings

    return retry(attempt, settings, better), tried


def test_the_first_good_result_ends_it():
    assert run(lambda settings, result: None if result >= 40 else 2 * settings) == (40, [1, 2, 4])
    assert run(lambda settings, result: None) == (10, [1])


def test_settings_that_cannot_change_are_not_tried_twice():
    assert run(lambda settings, result: min(2 * settings, 6)) == (60, [1, 2, 4, 6])


def test_the_next_settings_answer_to_what_went_wrong():
    def better(settings, result):
        return {10: 3, 30: 7, 70: None}[result]

    assert run(better) == (70, [1, 3, 7])
