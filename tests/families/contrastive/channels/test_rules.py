"""Averages by a rule for one sample that is fine enough."""

import numpy as np

from meanfield.families.contrastive.channels.rules import ACCURATE, LARGEST_CHANGE, one_sample_of, refined
from tests.families.contrastive.channels.problems import standard


def test_averages_that_are_no_number_in_a_later_state_are_not_taken():
    def method(rule, q, M):
        return np.full(3, np.nan if q[0, 0] > 0.5 else 1.0)

    states = [(np.full((2, 2), start), np.eye(2)) for start in (0.0, 0.9)]
    found = refined(method, one_sample_of(standard()), (), states, ACCURATE, LARGEST_CHANGE)
    assert np.isnan(found.error)
