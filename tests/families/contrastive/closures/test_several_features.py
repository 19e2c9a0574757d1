"""Three features with continuous laws: against the inversion of the characteristic function of B; what is refused."""

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from tests.oracles.plain_steps import make_closure, make_problem

FACTORS = {
    "uniform": lambda t: np.sinc(np.sqrt(3.0) * t / np.pi),
    "laplace": lambda t: 1 / (1 + 0.5 * t * t),
}


def mean(f, law, q):
    """<f(B)> for three features of unit variance; trapezoidal rules, exact to rounding for analytic f."""
    deviation = np.sqrt(1 - q @ q)
    t = np.arange(0.0, 9.2 / deviation, np.pi / 40)
    density = np.exp(-0.5 * (deviation * t) ** 2) * np.prod([FACTORS[law](qk * t) for qk in q], axis=0) / 40
    density[0] /= 2
    x = np.arange(0.0, 25.0, min(0.1, 0.6 * deviation))
    weight = np.full(x.size, 2 * (x[1] - x[0]))
    weight[0] /= 2
    return sum(
        (w * f(points)) @ (np.cos(np.outer(points, t)) @ density)
        for points, w in zip(np.array_split(x, 10), np.array_split(weight, 10), strict=True)
    )


@pytest.mark.parametrize(
    ("law", "radius"),
    [
        # close to the sphere the trapezoidal rules have many points: by default once
        pytest.param(law, radius, marks=pytest.mark.slow if (law, radius) == ("laplace", 0.9999) else ())
        for law in FACTORS
        for radius in (0.05, 0.5, 0.9, 0.9999)
    ],
)
def test_three_features(law, radius):
    """Lambda = 4 tau^2/m <s^2 p^2>, and g = -tau grad <s^2>, here by central differences of order 4."""
    q = radius * np.array([0.64, -0.6, 0.48])
    g, Lambda = make_closure("tanh", [{"law": law}] * 3, tau=0.3, m=4)(q)
    right = 4 * 0.3**2 / 4 * mean(lambda x: np.tanh(x) ** 2 / np.cosh(x) ** 4, law, q)
    assert Lambda == pytest.approx(right, rel=1e-11)  # RESOLVED; the trapezoidal rules are exact
    if radius == 0.9999:  # steps would leave the ball
        return
    for k in range(3):
        at = {step: mean(lambda x: np.tanh(x) ** 2, law, q + step * 2e-3 * np.eye(3)[k]) for step in (-2, -1, 1, 2)}
        slope = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * 2e-3)
        assert g[k] == pytest.approx(-0.3 * slope, abs=1e-9)  # h^4/30 = 5e-13 times a fifth derivative of 1000 or so


@pytest.mark.parametrize("noise", ["none", "opposite"])
def test_the_error_is_far_below_what_is_refused(noise, monkeypatch):
    hidden = [{"law": "uniform"}, {"law": "laplace"}, {"law": "laplace", "second_moment": 2.0}]
    problem = make_problem("relu", hidden, noise, "population")
    monkeypatch.setattr(
        "meanfield.families.contrastive.closures.closure.WORST_CHANGE", 1e-10
    )  # changes are 1e-15, of rounding
    Closure(problem)
    monkeypatch.setattr("meanfield.families.contrastive.closures.closure.WORST_CHANGE", 0.0)
    with pytest.raises(InputError, match=r"change by .*fewer features"):
        Closure(problem)


@pytest.mark.parametrize("law", ["uniform", "laplace", "student_t"])
@pytest.mark.parametrize("tiny", [5e-324, 1e-313, 1e-307, 1e-160, 1e-155, 1e-100])
def test_overlaps_that_are_almost_zero_give_what_zero_gives(law, tiny):
    """Differences of such overlaps have inverses that overflow; once that wrote outside of arrays."""
    hidden = {"law": law} | ({"degrees_of_freedom": 9.0} if law == "student_t" else {})
    closure = make_closure("softplus", [hidden] * 2, tau=0.4, m=5)
    here, there = closure(np.full(2, tiny)), closure(np.zeros(2))
    assert here[0] == pytest.approx(there[0], abs=1e-14)  # rounding
    assert here[1] == pytest.approx(there[1], rel=1e-13)  # rounding
