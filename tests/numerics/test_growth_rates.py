"""Order of growth rates, and what they say of stability."""

import numpy as np
import pytest

from meanfield.numerics.growth_rates import VERDICTS, sorted_rates, verdict_of


def test_the_fastest_growth_comes_first_and_conjugates_stay_together():
    rates = np.array([-1.0, 0.5 + 1j, 2.0, 0.5 - 1j])
    assert sorted_rates(rates).tolist() == [2.0, 0.5 - 1j, 0.5 + 1j, -1.0]
    assert sorted_rates(np.array([-2.0, -1.0])).dtype == complex


@pytest.mark.parametrize(
    ("rate", "word"), [(-1.0, "stable"), (1.0, "unstable"), (1e-8, "marginal"), (-1e-8, "marginal"), (0.0, "marginal")]
)
def test_verdicts(rate, word):
    assert VERDICTS[verdict_of(rate, 1e-7)] == word
