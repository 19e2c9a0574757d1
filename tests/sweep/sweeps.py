"""Sweeps whose points take milliseconds."""

from meanfield.problems.file import parse_problem
from meanfield.sweep import Sweep
from tests.example_problems import SMALL

TAU = {"key": "model.learning_rate", "values": [0.01, 0.05, 0.3]}
M2 = {"key": "features[0].hidden.second_moment", "grid": {"start": 0.9, "stop": 1.3, "points": 2}}
STATES = {"fixed_points": ["similarity", "growth"]}


def make_sweep(axes=(TAU, M2), methods=STATES, problem=SMALL, title=""):
    """A sweep; by default six points in a plane."""
    data = {"title": title, "problem": parse_problem(problem), "axes": list(axes), "methods": dict(methods)}
    return Sweep.model_validate(data)


def bits(dataset):
    """What the numbers are, without where they come from."""
    return {name: (variable.dims, variable.values.tobytes()) for name, variable in dataset.variables.items()}
