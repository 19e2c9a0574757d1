"""Moving averages of paths, against closed forms."""

import numpy as np
import pytest

from meanfield.numerics.moving_averages import along_a_line, average_along
from meanfield.numerics.ode import Tolerance


def kinked(t):
    return np.array([abs(t - 0.7), np.exp(-t)])


def known(t, a):
    """Averages from the start 0.7 and 1: of a kink at 0.7, and of an exponential."""

    def line(y, slope, value, time):
        return value + slope * time - slope / a + (y - value + slope / a) * np.exp(-a * time)

    first = line(0.7, -1.0, 0.7, t) if t < 0.7 else line(line(0.7, -1.0, 0.7, 0.7), 1.0, 0.0, t - 0.7)
    return [first, np.exp(-a * t) + a * (np.exp(-t) - np.exp(-a * t)) / (a - 1.0)]


@pytest.mark.parametrize("a", [0.3, 40.0])
def test_averages_of_a_path_with_a_corner_are_closed_forms(a):
    times = np.array([0.0, 0.2, 0.7, 1.1, 2.0])
    found = average_along(kinked, kinked(0.0), times, (0.7,), a, Tolerance(1e-11, 1e-11))
    assert found == pytest.approx(np.array([known(t, a) for t in times]), abs=1e-9)  # a hundred steps


@pytest.mark.parametrize("a", [0.3, 40.0])
def test_averages_along_lines_are_exact(a):
    found = kinked(0.0)[:1]
    for before, after in ((0.0, 0.3), (0.3, 0.7), (0.7, 2.0)):
        found = along_a_line(found, kinked(before)[:1], kinked(after)[:1], a, after - before)
    assert found[0] == pytest.approx(known(2.0, a)[0], abs=1e-14)  # rounding
