from itertools import combinations

import numpy as np
import pytest
from matplotlib.figure import Figure

import meanfield
from meanfield.problems.file import parse_problem

TEXT = """
title = "two features"
[model]
activation = "quadratic"
learning_rate = 0.05
batch_size = 4
[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
initial_overlap = 0.5
[[features]]
hidden = { law = "gaussian", second_moment = 1.2 }
coordinate = { law = "rademacher" }
initial_overlap = 0.2
[time]
stop = 1.0
outputs = 3
[density]
cells = 200
feature_nodes = 15
[particles]
method = "projected"
dimension = 100
replicas = 3
"""


def cell_averages(line):
    """Averages over cells of a density that is drawn as a parabola in each cell, which Simpson's rule integrates."""
    return line.get_ydata().reshape(-1, 3) @ np.array([1, 4, 1]) / 6


def look(handle):
    """What distinguishes an artist in grey print."""
    line = handle[0] if isinstance(handle, tuple) else handle
    if not hasattr(line, "get_linestyle") or not hasattr(line, "get_marker"):
        return type(handle).__name__, handle.get_alpha(), handle.get_linestyle()
    drawn = line.get_linestyle() not in ("None", "none", "")
    dashes = line._unscaled_dash_pattern if drawn else None
    filled = line.get_fillstyle(), str(line.get_markerfacecolor()).lower() in ("white", "none")
    return str(dashes), line.get_linewidth() if drawn else None, str(line.get_marker()), filled


def check_panels(figure):
    """All panels hold something, and no two entries of a legend differ by colour alone."""
    for axes in figure.axes:
        assert axes.has_data()
        handles, labels = axes.get_legend_handles_labels()
        for (one, first), (other, second) in combinations(zip(map(look, handles), labels, strict=True), 2):
            assert one != other or first == second, f"{first} and {second} differ by colour alone"


@pytest.fixture(scope="session")
def results():
    problem = parse_problem(TEXT)
    return {
        "density": meanfield.solve_density(problem),
        "ODE": meanfield.solve_order_parameters(problem),
        "SGD": meanfield.simulate_sgd(problem),
    }


@pytest.fixture
def axes():
    return Figure().subplots()


@pytest.fixture(scope="session")
def branches():
    problem = parse_problem(TEXT)
    return meanfield.contrastive.continue_fixed_points(problem, "model.learning_rate", 0.02, 0.05, points=3)
