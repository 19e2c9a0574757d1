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
    return meanfield.continue_fixed_points(problem, "model.learning_rate", 0.02, 0.05, points=3)
