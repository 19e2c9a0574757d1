"""Problems at random, with one or two features, over laws, moments, activations, centring, noise and tau/m."""

import numpy as np

from meanfield.families.contrastive.problem import Problem
from tests.example_problems import features, make_problem

ACTIVATIONS = ("quadratic", "quadratic", "relu", "tanh", "abs", "cubic", "sigmoid", "erf")


def random_law(rng: np.random.Generator) -> str:
    m2 = round(float(rng.uniform(0.6, 2.5)), 3)
    heavy = round(m2**2 * float(rng.uniform(1.2, 6.0)), 3)
    return (
        f'{{ law = "gaussian", second_moment = {m2} }}',
        f'{{ law = "three_point", second_moment = {m2}, fourth_moment = {heavy} }}',
        f'{{ law = "three_point", second_moment = {m2}, fourth_moment = {heavy} }}',
        f'{{ law = "rademacher", second_moment = {m2} }}',
        '{ law = "two_point", values = [-0.5, 2.0], probability = 0.8 }',
        '{ law = "gaussian_mixture", means = [-1.0, 0.5], variances = [0.2, 0.4], probabilities = [0.3, 0.7] }',
    )[rng.integers(6)]


def random_problem(seed: int, d1: int) -> Problem:
    rng = np.random.default_rng([seed, d1])
    tables = [f"{{ hidden = {random_law(rng)}, initial_overlap = 0.1 }}" for _ in range(d1)]
    model = (
        f'model = {{ activation = "{rng.choice(ACTIVATIONS)}", learning_rate = {10 ** rng.uniform(-3, -0.5):.4g}, '
        f'batch_size = {rng.integers(2, 40)}, centering = "{rng.choice(["none", "population", "batch"])}" }}'
    )
    lines = [features(*tables), model]
    if rng.random() < 0.4:
        lines.append(
            f"augmentation = {{ variance = [{rng.uniform(0.05, 0.6):.3f}, {rng.uniform(0.05, 0.6):.3f}], "
            f"correlation = {rng.choice([-1.0, 0.0, 0.5])} }}"
        )
    return make_problem(*lines)
