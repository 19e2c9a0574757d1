"""The stepper around the kernel: numbers do not depend on how the work is shared."""

import numpy as np
import pytest

from meanfield.density import steppers
from meanfield.density.grid import Grid
from meanfield.density.lanes import LANES
from meanfield.density.steppers import NumbaStepper


def several_steps(nodes: int) -> list[np.ndarray]:
    grid = Grid(np.linspace(-8, 8, 101), np.linspace(-2, 2, nodes)[:, None], np.full(nodes, 1 / nodes))
    w = grid.centres
    stepper = NumbaStepper(grid, np.exp(-0.5 * (w - 0.3 * grid.u) ** 2))
    moments = []
    for step in range(5):
        stepper.attempt(-0.1 * np.diff(w * w), 0.02 * step * grid.u[:, 0], 0.1, 0.5)
        moments.append(stepper.sums(np.array([w, w * w])))
        stepper.accept()
    return [np.array(moments), stepper.density()]


@pytest.mark.parametrize("threads", [2, 3, 4])
@pytest.mark.parametrize("nodes", [3 * LANES, 4 * LANES + 5])
def test_numbers_do_not_depend_on_threads(monkeypatch, nodes, threads):
    alone = several_steps(nodes)
    monkeypatch.setattr(steppers, "VALUES_PER_THREAD", 1)
    monkeypatch.setattr(steppers, "available_cores", lambda: threads)
    for shared, single in zip(several_steps(nodes), alone, strict=True):
        assert np.array_equal(shared, single)
