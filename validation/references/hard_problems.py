"""Hard problems of the density, one for each regime, and how finely their references are solved.

Each is a random problem of the law in `validation/contrastive/random_problems.py` or of a like one, some with an
earlier last time. Two schemes that share the closure and nothing else agree on them at all output times to `AGREEMENT`:
spectral elements with fixed nodes in w (`spectral_elements.py`), and the points of the Lagrangian scheme, which follow
the weights. `density_references.py` solves them by both and refuses to write what differs by more.
"""

from __future__ import annotations

from typing import NamedTuple

from validation.references.spectral_elements import Resolution

AGREEMENT = 1e-8
"""Largest difference in q and r of the two schemes at any output time."""

LAGRANGIAN_TOLERANCE = 1e-9
"""Tolerance of the Lagrangian scheme, the second opinion."""


class Hard(NamedTuple):
    """Hard problem: the reason, its file without the title, and the resolution of its reference."""

    regime: str
    text: str
    resolution: Resolution


def elements(**changes: float) -> Resolution:
    """Resolution for errors of some 1e-9, with extrapolation in time to order 6."""
    return Resolution(**({"tolerance": 1e-10, "columns": 6} | changes))  # type: ignore[arg-type]


HARD = {
    "kink": Hard(
        "noise far below the pull of l1: a layer of width 7e-4 forms at the kink, and some weights escape it",
        """
        model = { activation = "gelu", centering = "population", learning_rate = 0.02631, batch_size = 10 }
        prior = { name = "l1", strength = 2.3285 }
        time = { stop = 25.37, outputs = 21 }
        [[features]]
        hidden = { law = "rademacher" }
        coordinate = { law = "rademacher" }
        initial_overlap = -0.168
        """,
        elements(layers=12, ratio=0.5, half_width=14.0),
    ),
    "thin_layer": Hard(
        "a layer of width 6e-5 at the kink of l1, under features with a uniform law",
        """
        model = { activation = "gelu", centering = "none", learning_rate = 0.1084, batch_size = 5000 }
        augmentation = { variance = [0.114, 0.573], correlation = 0.612 }
        prior = { name = "l1", strength = 0.4911 }
        time = { stop = 11.123, outputs = 21 }
        [[features]]
        hidden = { law = "gaussian", second_moment = 0.7202 }
        coordinate = { law = "uniform" }
        initial_overlap = -0.491
        """,
        elements(layers=15, ratio=0.5, half_width=12.0),
    ),
    "near_one": Hard(
        "an overlap that ends at 0.998 under a prior of bounded pull",
        """
        model = { activation = "erf", centering = "population", learning_rate = 0.4169, batch_size = 500 }
        prior = { name = "log_cosh", strength = 0.06575 }
        time = { stop = 40.86, outputs = 21 }
        [[features]]
        hidden = { law = "gaussian", second_moment = 1.9375 }
        coordinate = { law = "three_point", fourth_moment = 5.0291 }
        initial_overlap = -0.6016
        """,
        elements(width=0.2, half_width=10.0),
    ),
    "strong": Hard(
        "a quartic prior that is stronger than what features do, and two wells",
        """
        model = { activation = "silu", centering = "population", learning_rate = 0.2084, batch_size = 1 }
        augmentation = { variance = [0.4099, 0.0337], correlation = 0.1933 }
        prior = { name = "quartic", strength = 8.517 }
        time = { stop = 41.71, outputs = 21 }
        [[features]]
        hidden = { law = "uniform", second_moment = 1.0482 }
        coordinate = { law = "rademacher" }
        initial_overlap = 0.5122
        """,
        elements(width=0.25),
    ),
    "wide_tails": Hard(
        "a prior of vanishing pull: most weights are drawn into a core, and few carry the norm far out",
        """
        model = { activation = "sin", centering = "none", learning_rate = 0.81491, batch_size = 5 }
        prior = { name = "cauchy", strength = 1.7935 }
        time = { stop = 10.0, outputs = 21 }
        [[features]]
        hidden = { law = "laplace", second_moment = 0.8186 }
        coordinate = { law = "rademacher" }
        initial_overlap = 0.57
        """,
        elements(half_width=40.0),
    ),
    "weak_noise": Hard(
        "noise D = 2e-9 under a quartic prior, and Gaussian features",
        """
        model = { activation = "sigmoid", centering = "population", learning_rate = 0.01789, batch_size = 500 }
        augmentation = { variance = [0.256, 0.135], correlation = -0.533 }
        prior = { name = "quartic", strength = 0.1999 }
        time = { stop = 11.591, outputs = 21 }
        [[features]]
        hidden = { law = "laplace", second_moment = 0.754 }
        coordinate = { law = "gaussian" }
        initial_overlap = 0.007
        """,
        elements(),
    ),
    "smooth_core": Hard(
        "a smooth core that forms slowly with noise D = 3e-6, where fixed cells underestimate their error",
        """
        model = { activation = "sin", centering = "population", learning_rate = 0.00908, batch_size = 10 }
        augmentation = { variance = [0.195, 0.424], correlation = 0.34 }
        prior = { name = "smooth_l1", strength = 0.0627 }
        time = { stop = 8.021, outputs = 21 }
        [[features]]
        hidden = { law = "laplace", second_moment = 1.9777 }
        coordinate = { law = "three_point", fourth_moment = 10.835 }
        initial_overlap = 0.396
        """,
        elements(),
    ),
    "two_features": Hard(
        "two features of different laws in a double well with noise D = 2e-9",
        """
        model = { activation = "sin", centering = "batch", learning_rate = 0.00674, batch_size = 5000 }
        augmentation = { variance = [0.049, 0.025], correlation = -0.308 }
        prior = { name = "double_well", strength = 0.0467 }
        time = { stop = 41.635, outputs = 21 }
        [[features]]
        hidden = { law = "laplace", second_moment = 1.686 }
        coordinate = { law = "uniform" }
        initial_overlap = -0.557
        [[features]]
        hidden = { law = "rademacher" }
        coordinate = { law = "rademacher" }
        initial_overlap = -0.269
        """,
        elements(width=0.75, panel=2.0),
    ),
    "long_elastic_net": Hard(
        "a feature that is learnt slowly under elastic_net with noise far below its pull",
        """
        model = { activation = "gelu", centering = "none", learning_rate = 0.008246, batch_size = 1 }
        augmentation = { variance = [0.1547, 0.0343], correlation = 0.1064 }
        prior = { name = "elastic_net", strength = 1.764 }
        time = { stop = 74.59, outputs = 21 }
        [[features]]
        hidden = { law = "laplace", second_moment = 1.9345 }
        coordinate = { law = "rademacher" }
        initial_overlap = -0.5461
        """,
        elements(layers=10, ratio=0.5, half_width=16.0),
    ),
    "wells": Hard(
        "a double well that tears the weights apart: its walls are 800 times as steep as the noise is large",
        """
        model = { activation = "hard_tanh", centering = "population", learning_rate = 0.1414, batch_size = 10 }
        prior = { name = "double_well", strength = 4.263 }
        time = { stop = 2.393, outputs = 21 }
        [[features]]
        hidden = { law = "gaussian", second_moment = 1.3437 }
        coordinate = { law = "three_point", fourth_moment = 6.7168 }
        initial_overlap = -0.044
        """,
        elements(width=0.15, half_width=8.0),
    ),
    "before_condensation": Hard(
        "l1 far below the noise at which weights condense, before they do",
        """
        model = { activation = "tanh", centering = "none", learning_rate = 0.0111, batch_size = 2 }
        prior = { name = "l1", strength = 0.7906 }
        time = { stop = 13.01, outputs = 21 }
        [[features]]
        hidden = { law = "gaussian", second_moment = 0.7361 }
        coordinate = { law = "rademacher" }
        initial_overlap = -0.3169
        """,
        elements(layers=11, ratio=0.5, half_width=12.0),
    ),
    "laplace": Hard(
        "features with a Laplace law, whose nodes reach far out",
        """
        model = { activation = "quadratic", centering = "population", learning_rate = 0.005955, batch_size = 500 }
        augmentation = { variance = [0.2779, 0.3942], correlation = 0.8337 }
        prior = { name = "cauchy", strength = 0.05822 }
        time = { stop = 5.38, outputs = 21 }
        [[features]]
        hidden = { law = "laplace", second_moment = 0.7478 }
        coordinate = { law = "laplace" }
        initial_overlap = 0.2899
        """,
        elements(half_width=20.0, width=0.75, panel=2.0, panel_nodes=12),
    ),
}
