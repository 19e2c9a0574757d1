"""Problems of the tests of SGD, and replicas of them without files, threads and outputs."""

import numpy as np

from meanfield.families.update_rule.particles.steppers import prepare_steppers
from meanfield.families.update_rule.problem import Problem

RULES = "tests.families.update_rule.particles.rules"
GAUSSIAN = [{"hidden": {"law": "gaussian", "second_moment": second}} for second in (1.5, 0.7)]
FULL = {
    "model": {"rule": f"{RULES}:full", "rule_parameters": {"rate": 0.3}},
    "data": {"signal": "spiked", "noise": 1.3, "coins": {"flip": 0.4}, "normals": ["eps"]},
    "features": [GAUSSIAN[0] | {"initial_overlap": [0.3, -0.2]}, GAUSSIAN[1] | {"initial_overlap": [0.1, 0.4]}],
    "students": [{"initial_norm": 0.8}, {"initial_norm": 1.1, "initial_overlap": [0.2]}],
    "side": {"gain": {"start": 0.7, "step": f"{RULES}:gain_step"}},
    "time": {"stop": 1.0, "outputs": 3},
    "particles": {"dimension": 33, "replicas": 2, "seed": 5, "method": "plain"},
}
ORTHONORMAL = {"students": [{}, {}], "features": [GAUSSIAN[0], GAUSSIAN[1]]}
SINGLE = {
    "model": {"rule": f"{RULES}:hebb", "rule_parameters": {"rate": 0.7}},
    "features": [{"initial_overlap": 0.2}],
    "time": {"stop": 1.0, "outputs": 3},
    "particles": {"dimension": 64, "replicas": 2, "method": "plain"},
}
SEVERAL = {
    "model": {"rule_parameters": {"rate": 0.3}},
    "data": {"signal": "orthogonal", "noise": 1.3, "coins": {"flip": 0.4}, "normals": ["eps"]},
    "features": [
        GAUSSIAN[0] | {"initial_overlap": [0.3, -0.2, 0.1]},
        GAUSSIAN[1] | {"initial_overlap": [0.1, 0.4, 0.2]},
    ],
    "groups": [{"name": "w", "constraint": "sphere"}, {"name": "V"}],
    "students": [
        {"group": "w", "initial_norm": 0.8},
        GAUSSIAN[1] | {"group": "V", "initial_norm": 1.1, "initial_overlap": [0.2]},
        GAUSSIAN[0] | {"group": "V", "initial_overlap": [0.1, 0.3]},
    ],
    "draws": [
        {"batch_size": 2, "gain": {"w": f"{RULES}:real"}},
        {
            "along": "V",
            "noise": 0.7,
            "gain": {"V": f"{RULES}:drawn", "w": f"{RULES}:fake"},
            "move": {"V": {"w": f"{RULES}:taught", "V": f"{RULES}:shrunk"}},
        },
    ],
    "time": {"stop": 1.0, "outputs": 3},
    "particles": {"dimension": 33, "replicas": 2, "seed": 5, "method": "plain"},
}
VIEWS = SEVERAL | {
    "data": {"signal": "orthogonal", "noise": 1.3},
    "draws": [
        {
            "name": "pairs",
            "batch_size": 2,
            "views": 2,
            "view_covariance": [[0.5, 0.2], [0.2, 0.4]],
            "gain": {"w": [f"{RULES}:first_view", f"{RULES}:second_view"], "V": [f"{RULES}:both_views"] * 2},
        },
        {"along": "V", "gain": {"w": f"{RULES}:fake"}},
    ],
    "side": {"gain": {"start": 0.7, "step": f"{RULES}:gain_of_views"}},
}
MEANS = VIEWS | {
    "draws": [
        VIEWS["draws"][0]
        | {
            "means": [f"{RULES}:level", f"{RULES}:in_halves"],
            "gain": {"w": [f"{RULES}:first_centred", f"{RULES}:second_centred"], "V": [f"{RULES}:both_views"] * 2},
        },
        {"along": "V", "means": [f"{RULES}:sizes"], "gain": {"V": f"{RULES}:shrunk_by_sizes", "w": f"{RULES}:fake"}},
    ],
}
TOGETHER = VIEWS | {
    "data": SEVERAL["data"],
    "draws": [
        {
            "samples": 3,
            "batch_size": 2,
            "views": 2,
            "view_covariance": [[0.5, 0.2], [0.2, 0.4]],
            "gain": {"w": [f"{RULES}:centred_together"] * 2, "V": [f"{RULES}:away_together"] * 2},
        },
        {"along": "V", "gain": {"V": f"{RULES}:drawn"}},
    ],
    "side": {},
}


def changed(problem, **tables):
    """Problem with other keys in its tables, and other lists."""
    merged = {key: problem.get(key, {}) | given if isinstance(given, dict) else given for key, given in tables.items()}
    return problem | merged


def made(problem, **tables):
    return Problem.model_validate(changed(problem, **tables))


def stepper_maker(problem):
    """Function from a range of replicas to their stepper; the rule is compiled once."""
    return prepare_steppers(problem, problem.particles.method)


def after(problem, replicas, steps):
    """Replicas after some steps."""
    stepper = stepper_maker(problem)(replicas)
    stepper.advance(0, steps)
    return stepper


def rows_after(problem, runs, steps=None):
    """Results of many runs after some steps, or unit time, side by side, with every number once: (runs, numbers)."""
    make, rows = stepper_maker(problem), []
    together = runs if problem.particles.method == "chain" else 1
    for first in range(0, runs, together):
        stepper = make(range(first, first + together))
        stepper.advance(0, steps or problem.particles.dimension)
        rows.append(stepper.rows)
    found = {name: np.concatenate([each[name] for each in rows]) for name in rows[0]}
    lower = np.tril_indices(len(problem.students))
    parts = [found["R"].reshape(runs, -1), found["Q"][:, *lower], found.get("v", np.empty((runs, 0)))]
    return np.concatenate(parts, axis=1)
