"""Random problems with two features, as tables, for hypothesis."""

import numpy as np
from hypothesis import strategies as st

from tests.oracles.activations import ACTIVATIONS


def numbers(low, high):
    """With few digits, so that products of small ones do not underflow."""
    return st.floats(low, high).map(lambda x: round(x, 6))


MOMENT = numbers(0.3, 2.5)


def table(law, **strategies):
    return st.fixed_dictionaries({"law": st.just(law), **strategies})


SYMMETRIC = (
    table("gaussian", second_moment=MOMENT)
    | table("rademacher", second_moment=MOMENT)
    | st.builds(
        lambda m2, ratio: {"law": "three_point", "second_moment": m2, "fourth_moment": ratio * m2**2},
        MOMENT,
        numbers(1.0, 6.0),
    )
)
SKEW = st.builds(  # of mean zero
    lambda low, high: {"law": "two_point", "values": [-low, high], "probability": high / (low + high)},
    numbers(0.2, 2.0),
    numbers(0.2, 2.0),
)
SHIFTED_LAWS = table(
    "gaussian_mixture",
    means=st.tuples(numbers(-1.5, 1.5), numbers(-1.5, 1.5)),
    variances=st.tuples(numbers(0.0, 1.0), numbers(0.1, 1.0)),
    probabilities=st.sampled_from([(0.5, 0.5), (0.1, 0.9)]),
)
DENSITIES = table("uniform", second_moment=MOMENT) | table("laplace", second_moment=MOMENT)
ANY = SYMMETRIC | SKEW | SHIFTED_LAWS
PAIRS = st.tuples(ANY | DENSITIES, ANY)
JOINT = st.builds(
    lambda values: {"law": "discrete", "values": values, "probabilities": [0.2, 0.3, 0.5]},
    st.lists(st.tuples(numbers(-2, 2), numbers(0.1, 2)), min_size=3, max_size=3),
).filter(lambda law: any(value[0] for value in law["values"]))
# Weaker noise than that, or noises nearly but not quite equal, may be refused for a kinked activation.
NOISE_VARIANCE = st.just(0.0) | numbers(0.01, 1.0)
NOISE_TABLES = st.none() | st.builds(
    lambda v11, v22, correlation: {"variance": [v11, v22], "correlation": correlation},
    NOISE_VARIANCE,
    NOISE_VARIANCE,
    st.sampled_from([-1.0, 0.0, 1.0]) | numbers(-0.99, 0.99),
)
COMMON = {
    "activation": st.sampled_from(ACTIVATIONS),
    "noise": NOISE_TABLES,
    "centering": st.sampled_from(["none", "population", "batch"]),
}


def points(radius):
    """Points in the disc of that radius, with four decimals: numbers like 1e-300 try the oracle, not the package."""
    return st.builds(
        lambda angle, r: np.trunc(1e4 * r * np.array([np.cos(angle), np.sin(angle)])) / 1e4,
        numbers(0.0, 2 * np.pi),
        numbers(0.0, radius),
    )
