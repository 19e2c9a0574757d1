"""Steps between outputs: ends, counts, refinement and grading."""

import numpy as np
import pytest

from meanfield.numerics.step_times import StepTimes

GRADED = StepTimes(np.linspace(0.0, 20.0, 6), ticks=3.0, rate=0.4, onset=0.01)


def all_steps(step_times):
    return np.concatenate([[0.0], *(step_times.steps(i) for i in range(len(step_times.counts)))])


@pytest.mark.parametrize("step_times", [GRADED, StepTimes(np.linspace(0.0, 2.0, 3), ticks=1.0, rate=5.0)])
@pytest.mark.parametrize("factor", [1, 3])
def test_steps_end_at_the_outputs(step_times, factor):
    times = all_steps(step_times.refined(factor))
    assert len(times) == factor * step_times.total + 1
    assert np.diff(times).min() > 0
    assert set(step_times.outputs) <= set(times)
    assert times[::factor] == pytest.approx(all_steps(step_times), rel=1e-12)  # rounding of the clock's inverse


def test_equal_steps_without_an_onset():
    steps = np.diff(all_steps(StepTimes(np.linspace(0.0, 2.0, 3), ticks=1.0, rate=5.0)))
    assert steps == pytest.approx(0.2, rel=1e-13)  # rounding


def test_steps_grow_with_time_and_then_no_more():
    """dt = (t + onset)/ticks before the time scale of the rate, 1/(ticks rate) after it."""
    graded = StepTimes(np.array([0.0, 1e4]), ticks=100.0, rate=0.01, onset=1e-3)
    times = all_steps(graded)
    middle, steps = 0.5 * (times[1:] + times[:-1]), np.diff(times)
    density = 100.0 * (0.01 + 1 / (middle + 1e-3))
    assert steps * density == pytest.approx(1.0, rel=1e-3)  # the clock is linear within a step up to 1/ticks^2
