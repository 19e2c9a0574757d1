"""Priors: phi by its definition, differences of Phi by quadrature, and a user's own."""

import ctypes
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from meanfield import InputError, Prior
from meanfield.extend import PriorSettings
from meanfield.ingredients.priors import PRIORS, make_prior
from meanfield.numerics.compiled.scalar_functions import compile_scalar, evaluate
from meanfield.problems.file import load_problem
from tests.example_problems import problem_text

CASES = [
    ("none", (), lambda w: 0 * w, ()),
    ("l2", (), lambda w: w, ()),
    ("l1", (), np.sign, (0,)),
    ("elastic_net", (), lambda w: 0.5 * np.sign(w) + 0.5 * w, (0,)),
    ("elastic_net", (("ratio", 0.3),), lambda w: 0.3 * np.sign(w) + 0.7 * w, (0,)),
    ("elastic_net", (("ratio", 1.0),), np.sign, (0,)),
    ("smooth_l1", (), lambda w: np.clip(w / 0.5, -1, 1), (-0.5, 0.5)),
    ("smooth_l1", (("width", 1.7),), lambda w: np.clip(w / 1.7, -1, 1), (-1.7, 1.7)),
    ("log_cosh", (), np.tanh, ()),
    ("quartic", (), lambda w: w**3, ()),
    ("cauchy", (), lambda w: w / (1 + w**2), ()),
    ("double_well", (), lambda w: w**3 - w, ()),
]
PRIOR = pytest.mark.parametrize(("name", "parameters", "phi", "kinks"), CASES)
W = np.concatenate([np.linspace(-6, 6, 49) + 0.0137, [-1.7, -0.5, 0.0, 1e-9, 0.5, 1.7]])
EDGES = np.array([-4.0, -2.9, -1.7, -1.69, -0.6, 0.3, 0.9, 2.0, 2.1, 5.0])
"""Cells of very different widths; kinks lie on edges and inside cells."""


def machine_code(function):
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(compile_scalar(function))


def integral(phi, low, high, kinks=()):
    """Difference of the potential, by quadrature between the kinks."""
    cuts = [low, *(kink for kink in sorted(kinks) if low < kink < high), high]
    exact = {"epsabs": 1e-14, "epsrel": 1e-13}  # a reference: rounding
    return sum(quad(phi, a, b, **exact)[0] for a, b in pairwise(cuts))


def assert_steps(prior, phi, kinks):
    right = [integral(phi, low, high, kinks) for low, high in pairwise(EDGES)]
    steps = prior.potential_steps(EDGES)
    assert steps.shape == (len(EDGES) - 1,)
    scale = max(map(abs, right))
    np.testing.assert_allclose(steps, right, rtol=1e-12, atol=4e-15 * scale)  # rounding, of differences of Phi too


def test_every_prior_is_tested():
    assert {name for name, *_ in CASES} == set(PRIORS)


@PRIOR
def test_force(name, parameters, phi, kinks):
    prior = make_prior(name, parameters)
    compiled = machine_code(prior.unit_force)
    for w in W:
        assert prior.unit_force(w) == pytest.approx(phi(w), rel=4e-16, abs=4e-16)  # rounding: two operations, w^3 - w
        assert compiled(w) == pytest.approx(phi(w), rel=4e-16, abs=4e-16)  # the same
    np.testing.assert_allclose(prior.forces(W.reshape(5, 11)), phi(W).reshape(5, 11), rtol=4e-16, atol=4e-16)  # same


@PRIOR
def test_kinks_are_named(name, parameters, phi, kinks):
    """Where phi or its slope jumps, by one-sided differences of the definition: nowhere else on a fine grid."""
    assert set(make_prior(name, parameters).kinks) == set(kinks)
    h = 1e-6
    for place in np.linspace(-3, 3, 601).round(2):
        slopes = [(phi(place + 2 * side * h) - phi(place + side * h)) / (side * h) for side in (-1, 1)]
        values = [phi(place + side * h) for side in (-1, 1)]
        jumps = abs(np.diff(slopes)[0]) > 0.1 or abs(np.diff(values)[0]) > 0.1
        assert jumps == (place in kinks), place


@PRIOR
def test_steps_of_the_potential(name, parameters, phi, kinks):
    assert_steps(make_prior(name, parameters), phi, kinks)


@PRIOR
def test_steps_without_a_potential(name, parameters, phi, kinks):
    """Where phi is integrated instead, kinks inside cells included."""
    prior = make_prior(name, parameters)
    assert_steps(Prior(prior.unit_force, None, prior.kinks), phi, kinks)


def test_steps_across_several_kinks_of_one_cell():
    """Whatever the order in which they are named."""

    def force(w):
        return (1.0 if w > 0.4 else -1.0) + abs(w - 0.55) + (3.0 if w > 0.7 else 0.0)

    for kinks in ((0.4, 0.55, 0.7), (0.7, 0.4, 0.55)):
        assert_steps(Prior(force, None, kinks), force, kinks)


def test_steps_in_wide_cells_are_as_exact_as_the_gauss_rule():
    """Twelve nodes: exact for polynomials of degree 23."""
    prior = Prior(lambda w: 24.0 * w**23 - 3.0 * w**2)
    edges = np.array([-1.5, 0.2, 1.4])
    right = np.diff(edges**24 - edges**3)
    np.testing.assert_allclose(prior.potential_steps(edges), right, rtol=1e-12)  # rounding of w^23


@PRIOR
def test_potential_has_the_force_as_slope(name, parameters, phi, kinks):
    prior = make_prior(name, parameters)
    for low, high in [(-2.3, 1.1), (0.1, 0.2), (-5.0, -4.5), (-0.3, 0.3)]:
        step = prior.potential(high) - prior.potential(low)
        right = integral(phi, low, high, kinks)
        assert step == pytest.approx(right, rel=1e-12, abs=1e-13)  # rounding of Phi = 150


@PRIOR
def test_potential_is_symmetric(name, parameters, phi, kinks):
    """No prior of ours prefers a sign."""
    potential = make_prior(name, parameters).potential
    np.testing.assert_array_equal(evaluate(potential, W), evaluate(potential, -W))
    assert potential(0.0) == pytest.approx(0, abs=1e-16)  # rounding of log 2


@PRIOR
def test_linear_means_proportional_to_w(name, parameters, phi, kinks):
    assert make_prior(name, parameters).linear == np.allclose(phi(W), W * phi(1.0), rtol=1e-12)  # rounding


@pytest.mark.parametrize("name", ["log_cosh", "cauchy", "smooth_l1", "l1"])
def test_far_out_nothing_overflows(name):
    prior = make_prior(name)
    for function in (prior.unit_force, machine_code(prior.unit_force)):
        assert [function(w) for w in (-1e300, 1e300)] == ([0, 0] if name == "cauchy" else [-1, 1])
    for w in (800.0, 1e300):
        right = {"l1": w, "smooth_l1": w - 0.25, "log_cosh": w - np.log(2)}.get(name)
        if right is not None:
            assert machine_code(prior.potential)(-w) == pytest.approx(right, rel=1e-15)  # rounding


# Settings


@PRIOR
def test_settings_multiply_by_the_strength(name, parameters, phi, kinks):
    settings = PriorSettings(name=name, strength=2.5, parameters=dict(parameters))
    np.testing.assert_allclose(settings.force(W), 2.5 * phi(W), rtol=1e-15, atol=1e-15)  # rounding
    one = settings.functions.potential_steps(EDGES)
    np.testing.assert_allclose(settings.potential_steps(EDGES), 2.5 * one, rtol=1e-15)  # rounding


def test_force_has_the_strength_and_unit_force_has_not():
    settings = PriorSettings(name="quartic", strength=2.5)
    assert settings.functions.unit_force(2.0) == 8.0
    np.testing.assert_array_equal(settings.force(np.array([2.0])), [2.5 * 8.0])
    assert not hasattr(settings.functions, "force")


def test_the_constructor_takes_the_force_by_its_old_keyword():
    def force(w):
        return 2.0 * w

    by_keyword, by_place = Prior(force=force, kinks=[1.0], linear=True), Prior(force, None, (1.0,), True)
    assert by_keyword == by_place
    assert by_keyword.unit_force is force
    assert by_keyword != Prior(lambda w: 2.0 * w, None, (1.0,), True)


def test_no_prior_by_default():
    np.testing.assert_array_equal(PriorSettings().force(W), np.zeros_like(W))
    np.testing.assert_array_equal(PriorSettings().potential_steps(EDGES), np.zeros(len(EDGES) - 1))


# A user's own


OWN = """
import math

from meanfield import Prior

def plain(w):
    return w * math.exp(-abs(w)) * (1.0 if w > 0 else 2.0)

def jump(w):
    return 1.0 if w > 0.25 else -0.5

bent = Prior(jump, kinks=(0.25,))
with_potential = Prior(jump, lambda w: w if w > 0.25 else 0.375 - 0.5 * w, kinks=(0.25,))
straight = Prior(lambda w: 3.0 * w, linear=True)

def hat(width, height=1.0):
    return Prior(lambda w: height * math.tanh(w / width), lambda w: height * width * math.log(math.cosh(w / width)))

wrong_everywhere = Prior(lambda w: w, lambda w: w * w)
wrong_sign = Prior(lambda w: -w, lambda w: 0.5 * w * w)
wrong_far_out = Prior(lambda w: w if w < 3.5 else 3.5, lambda w: 0.5 * w * w)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Load the prior of that name: ours, or one in a module beside the problem file."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_priors.py").write_text(OWN)

    def load(name, parameters=""):
        address = name if name in PRIORS else f"own_priors:{name}"
        keys = f'name = "{address}", strength = 2.0, parameters = {{ {parameters} }}'
        (folder / "problem.toml").write_text(problem_text(f"prior = {{ {keys} }}"))
        return load_problem(folder / "problem.toml").prior

    yield load
    sys.modules.pop("own_priors", None)


def phi_plain(w):
    return w * np.exp(-abs(w)) * (1 if w > 0 else 2)


def phi_jump(w):
    return 1.0 if w > 0.25 else -0.5


@pytest.mark.parametrize(
    ("name", "parameters", "phi", "kinks"),
    [
        ("jump", "", phi_jump, None),
        ("plain", "", phi_plain, None),
        ("bent", "", phi_jump, (0.25,)),
        ("with_potential", "", phi_jump, (0.25,)),
        ("straight", "", lambda w: 3 * w, ()),
        ("hat", "width = 0.4", lambda w: np.tanh(w / 0.4), ()),
        ("hat", "width = 0.4, height = 3.0", lambda w: 3 * np.tanh(w / 0.4), ()),
    ],
)
def test_own_prior(own, name, parameters, phi, kinks):
    settings = own(name, parameters)
    np.testing.assert_allclose(settings.force(W), [2 * phi(w) for w in W], rtol=1e-15)  # rounding
    if kinks is not None:  # else the kink is not named
        edges = np.linspace(-2, 2, 18)
        right = [2 * integral(phi, a, b, kinks) for a, b in pairwise(edges)]
        np.testing.assert_allclose(settings.potential_steps(edges), right, rtol=1e-11, atol=1e-14)  # tanh by 12 nodes
        assert settings.functions.kinks == kinks
    assert settings.functions.linear == (name == "straight")


@pytest.mark.parametrize(
    ("name", "place", "given", "right"),
    [
        ("wrong_everywhere", -6.0, lambda w: w, lambda w: 2 * w),
        ("wrong_sign", -6.0, lambda w: -w, lambda w: w),
        ("wrong_far_out", 3.5, lambda w: 3.5, lambda w: w),
    ],
)
def test_own_wrong_potential_is_refused(own, name, place, given, right):
    with pytest.raises(InputError) as error:
        own(name)
    found = str(error.value)
    for words in (f"prior.name: the force of 'own_priors:{name}'", "correct force or potential", "kinks"):
        assert words in found
    at = float(found.partition(" at ")[2].split(",")[0])
    assert at == pytest.approx(place, abs=0.3)  # points are 0.2 apart
    assert float(found.partition("' is ")[2].split(" ")[0]) == pytest.approx(given(at), rel=1e-3)  # `at` has 4 digits
    shown = float(found.partition("numerical derivative is ")[2].split(";")[0])
    assert shown == pytest.approx(right(at), rel=1e-3)  # the same


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("elastic_net", "ratoi = 0.1", ["'ratoi'", "did you mean 'ratio'?"]),
        ("l2", "ratio = 0.1", ["'l2'", "'ratio'", "takes none"]),
        ("elastic_net", "ratio = 1.5", ["ratio = 1.5", "[0, 1]", "correct it"]),
        ("smooth_l1", "width = 0.0", ["width = 0.0", "positive", "for instance 0.5"]),
        ("smooth_l1", "width = inf", ["prior.parameters", "inf", "finite"]),
        ("smooth_l1", "width = '1'", ["prior.parameters", "'1'", "number"]),
    ],
)
def test_bad_parameters(own, name, parameters, words):
    with pytest.raises(InputError) as error:
        own(name, parameters)
    assert all(word in str(error.value) for word in ["problem.toml: prior.", *words]), error.value
