"""Hidden-manifold problems for tests: problem N1 of the theory with lines of TOML laid over it."""

import tomllib

from meanfield.families.hidden_manifold.problem import Problem

BASE = """
family = "hidden_manifold"
inputs = { nonlinearity = "sign", aspect_ratio = 0.5 }
teacher = { overlap = [[1.0, 0.0], [0.0, 1.0]], output_weights = [1.0, 1.0] }
training = { learning_rate = 0.2, output_learning_rate = 0.0 }
time = { stop = 1.0, outputs = 2 }
particles = { dimension = 200, replicas = 2 }

[student]
output_weights = [1.0, 1.0]
on_teacher = [[0.3, 0.0], [0.05, 0.25]]
elsewhere = [[0.49, 0.0], [0.0, 0.49]]
"""

TWO_BLOCKS = 'inputs.spectrum = { law = "atoms", eigenvalues = [0.4, 1.6] }'
LINEAR = 'inputs.nonlinearity = "linear"'
BOTH_LAYERS = "training.output_learning_rate = 0.2"
SCALES = "inputs.components = [{ weight = 0.5, scale = 0.4 }, { weight = 0.5, scale = 1.35647 }]"
MEANS = (
    "inputs.components = [{ weight = 0.3, mean = [2.0, 0.5], mean_elsewhere = 1.5 }, "
    "{ weight = 0.7, mean = [-0.8571428571428571, -0.21428571428571427] }]"
)
PER_COORDINATE = (
    'inputs.components_drawn = "coordinate"',
    "inputs.components = [{ weight = 0.3, mean = -1.05, scale = 0.7 }, { weight = 0.7, mean = 0.45, scale = 0.8 }]",
)
STRONG = "training = { learning_rate = 1.5, output_learning_rate = 1.0 }"
RANDOM = ('student = { initial = "random", variance = 0.7 }',)


def make_problem(*lines: str) -> Problem:
    """The base problem with lines such as `inputs.nonlinearity = "tanh"` laid over it; lists are replaced whole."""
    data = tomllib.loads(BASE)
    for line in lines:
        data = _merged(data, tomllib.loads(line))
    if data["student"].get("initial") == "random":
        data["student"] = {k: v for k, v in data["student"].items() if k not in ("on_teacher", "elsewhere")}
    del data["family"]
    return Problem.model_validate(data)


def _merged(old: dict, new: dict) -> dict:
    return old | {
        key: _merged(old[key], value) if isinstance(value, dict) and isinstance(old.get(key), dict) else value
        for key, value in new.items()
    }
