"""Activations against symbolic differentiation, in Python and compiled, and a user's own against ours."""

import ctypes
import math
import sys
from functools import cache

import mpmath as mp
import numpy as np
import pytest
import sympy as sp

from meanfield import Activation, InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.ingredients.activations import ACTIVATIONS, make_activation
from meanfield.numerics.compiled.differences import REACHES
from meanfield.problems.file import load_problem
from tests.example_problems import problem_text

X = sp.Symbol("x", real=True)
SLOPE = sp.Rational(0.01)  # the very number that 0.01 is in floating point
SYMBOLIC = {
    "linear": X,
    "quadratic": X**2,
    "cubic": X**3,
    "relu": sp.Piecewise((X, X > 0), (0, True)),
    "leaky_relu": sp.Piecewise((X, X > 0), (SLOPE * X, True)),
    "abs": sp.Piecewise((X, X > 0), (-X, True)),
    "hard_tanh": sp.Piecewise((-1, X < -1), (1, X > 1), (X, True)),
    "erf": sp.erf(X),
    "scaled_erf": sp.erf(X / sp.sqrt(2)),
    "tanh": sp.tanh(X),
    "sigmoid": 1 / (1 + sp.exp(-X)),
    "softplus": sp.log(1 + sp.exp(X)),
    "gelu": X * (1 + sp.erf(X / sp.sqrt(2))) / 2,
    "silu": X / (1 + sp.exp(-X)),
    "sin": sp.sin(X),
}
GROWTH = dict.fromkeys(SYMBOLIC, 1) | {"quadratic": 2, "cubic": 3}
GROWTH |= dict.fromkeys(["hard_tanh", "erf", "scaled_erf", "tanh", "sigmoid", "sin"], 0)

LEFT_RIGHT = {
    "relu": (0, 0, 1, 0),
    "leaky_relu": (0.01, 0, 1, 0),
    "abs": (-1, 0, 1, 0),
    "hard_tanh": (0, -1, 0, 1),
    "erf": (0, -1, 0, 1),
    "scaled_erf": (0, -1, 0, 1),
    "tanh": (0, -1, 0, 1),
    "sigmoid": (0, 0, 0, 1),
    "softplus": (0, 0, 1, 0),
    "gelu": (0, 0, 1, 0),
    "silu": (0, 0, 1, 0),
}
"""Far out sigma(x) is a x + b on the left and c x + d on the right."""

POINTS = [*np.linspace(-12, 12, 97) + 0.0371, *(s * x for s in (-1, 1) for x in (1e-300, 1e-8, 0.999, 1.001, 30, 45))]
NAMES = sorted(SYMBOLIC)


def ours(name):
    return make_activation(name)


@cache
def exact(name, order):
    """The derivative of that order to 40 digits, rounded to double precision."""
    function = sp.lambdify(X, sp.diff(SYMBOLIC[name], X, order), "mpmath")

    def value(x):
        with mp.workdps(40):
            return float(function(mp.mpf(x)))

    return value


def compiled(activation, order):
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(activation.addresses[order])


def candidates(expression):
    """Where a piecewise expression changes its piece."""
    conditions = [condition for _, condition in expression.args] if isinstance(expression, sp.Piecewise) else []
    return {float(condition.rhs) for condition in conditions if condition != True}  # noqa: E712


def limits(name, place):
    """sigma' just left and just right of a place; the pieces are linear."""
    slope = sp.diff(SYMBOLIC[name], X)
    return [float(slope.subs(X, place + side * sp.Rational(1, 2**40))) for side in (-1, 1)]


def jumps(name):
    return {place for place in candidates(SYMBOLIC[name]) if len(set(limits(name, place))) == 2}


def test_every_activation_is_tested():
    assert set(SYMBOLIC) == set(ACTIVATIONS)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_values_and_derivatives(name, order):
    activation = ours(name)
    in_python, in_machine_code = (activation.value, activation.slope)[order], compiled(activation, order)
    for x in POINTS:
        right = exact(name, order)(x)
        tolerance = 4e-16 * max(1, abs(x)) * (1 + abs(right))  # rounding of x erfc, x tanh, x^3 and of 1 - tanh^2
        assert abs(in_python(x) - right) <= tolerance, x
        assert abs(in_machine_code(x) - right) <= tolerance, x


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_one_float_return_floats(name):
    activation = ours(name)
    assert isinstance(activation.value(0.5), float)
    assert isinstance(activation.slope(0.5), float)


@pytest.mark.parametrize("name", NAMES)
def test_kinks_are_where_the_slope_jumps(name):
    assert len(ours(name).kinks) == len(set(ours(name).kinks))
    assert set(ours(name).kinks) == jumps(name)


def test_some_activations_have_kinks():
    """So that the test above cannot pass by finding none."""
    assert jumps("relu") == jumps("leaky_relu") == jumps("abs") == {0.0}
    assert jumps("hard_tanh") == {-1.0, 1.0}


@pytest.mark.parametrize("name", [name for name in NAMES if candidates(SYMBOLIC[name])])
def test_at_a_kink(name):
    """sigma is continuous, and sigma' the mean of what it is on either side."""
    activation = ours(name)
    for kink in activation.kinks:
        assert activation.value(kink) == exact(name, 0)(kink)
        assert activation.slope(kink) == np.mean(limits(name, kink))
        assert compiled(activation, 1)(kink) == activation.slope(kink)


@pytest.mark.parametrize("x", [800.0, 1e150, 1e300])
@pytest.mark.parametrize("name", LEFT_RIGHT)
def test_far_out_nothing_overflows(name, x):
    """The quadratures reach far into the tails."""
    activation = ours(name)
    a, b, c, d = LEFT_RIGHT[name]
    for value, slope in ((activation.value, activation.slope), (compiled(activation, 0), compiled(activation, 1))):
        assert (value(-x), value(x)) == (b - a * x, c * x + d)
        assert (slope(-x), slope(x)) == (a, c)


def test_every_activation_that_could_overflow_is_tested_far_out():
    assert set(LEFT_RIGHT) == set(ACTIVATIONS) - {"linear", "quadratic", "cubic", "sin"}


@pytest.mark.parametrize("x", [1e150, 1e300])
def test_a_sine_of_huge_numbers(x):
    for function in (compiled(ours("sin"), 0), compiled(ours("sin"), 1)):
        assert abs(function(x)) <= 1


@pytest.mark.parametrize("slope", [-1.0, 0.3, 2.5])
def test_leaky_relu_takes_its_slope(slope):
    activation = make_activation("leaky_relu", (("slope", slope),))
    for value, derivative in (
        (activation.value, activation.slope),
        (compiled(activation, 0), compiled(activation, 1)),
    ):
        assert [value(x) for x in (-2.0, 0.0, 3.0)] == [-2 * slope, 0.0, 3.0]
        assert [derivative(x) for x in (-2.0, 0.0, 3.0)] == [slope, 0.5 * (1 + slope), 1.0]


@pytest.mark.parametrize("name", NAMES)
def test_growth(name):
    assert ours(name).growth == GROWTH[name]


@pytest.mark.parametrize(
    ("value", "growth"),
    [
        (lambda x: x / (1 + x * x) ** 0.25, 0.5),
        (lambda x: math.atan(x), 0),
        (lambda x: math.exp(-x * x), 0),
        (lambda x: math.exp(x), math.inf),
        (lambda x: math.sinh(x), math.inf),
        (lambda x: -x * x * x if x < 0 else 0.0, 3),
        (lambda x: 0.01 * x * x - x, 2),
    ],
)
def test_growth_of_other_functions(value, growth):
    assert Activation(value, value).growth == pytest.approx(growth, abs=0.02)  # lower terms: 1 % of the leading one


def test_polynomials_are_recognised():
    """Among ours, as symbols say; others to rounding, and up to the degree that is asked for."""
    for name, symbol in SYMBOLIC.items():
        polynomial = tuple(map(float, reversed(sp.Poly(symbol).all_coeffs()))) if symbol.is_polynomial(X) else ()
        assert ours(name).polynomial == pytest.approx(polynomial, rel=1e-13)  # rounding
    quartic = Activation(lambda x: 0.3 * x**4 - x + 2.0, lambda x: 1.2 * x**3 - 1.0).polynomial
    np.testing.assert_allclose(quartic, [2.0, -1.0, 0.0, 0.0, 0.3], rtol=1e-13)  # rounding
    assert quartic[2] == quartic[3] == 0
    others = (lambda x: x**5), (lambda x: x * x + 1e-9 * math.sin(x)), (lambda x: math.exp(x * x)), (lambda x: 1 / x)
    assert all(Activation(value, value).polynomial == () for value in others)
    assert Activation(lambda x: x, lambda x: 1.0, kinks=(5.0,)).polynomial == ()


@pytest.mark.parametrize("name", NAMES)
def test_highest_power(name):
    """Of c^2, c sigma sigma' ~ c^(2 gamma) and sigma^2 sigma'^2 ~ c^(4 gamma - 2)."""
    gamma = GROWTH[name]
    assert ours(name).highest_power == max(2, 1 + gamma + (gamma - 1), 2 * gamma + 2 * (gamma - 1))


def test_highest_power_of_the_unbounded():
    assert Activation(lambda x: math.exp(x), lambda x: math.exp(x)).highest_power == math.inf


def test_addresses_are_compiled_once():
    activation = ours("tanh")
    assert activation.addresses is activation.addresses
    assert len(set(activation.addresses)) == 2


def test_activations_are_frozen():
    with pytest.raises(AttributeError):
        ours("tanh").kinks = (1.0,)


# A user's own


OWN = """
import numpy as np

from meanfield import Activation

def smooth(x):
    return 1 / (1 + np.exp(-x))

hard = Activation(lambda x: min(max(x, -1.0), 1.0), lambda x: 1.0 if abs(x) < 1 else 0.0, kinks=(-1.0, 1.0))

def leaky(slope):
    return Activation(lambda x: x if x > 0 else slope * x, lambda x: 1.0 if x > 0 else slope, (0.0,))

def parabola(height=1.0, tilt=0.0):
    def value(x):
        return height * x * x + tilt * x
    return value

def bent(x):
    return x if x.real > 0.7 else 0.5 * x + 0.35

unnamed_kink = Activation(lambda x: abs(x - 0.7), lambda x: 1.0 if x > 0.7 else -1.0)

wrong = Activation(lambda x: x * x * x, lambda x: 3.0 * x * x if x < 2.5 else 2.0 * x * x)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Load the problem with the activation of that name: ours, or one in a module beside the problem file."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_activations.py").write_text(OWN)

    def load(name, parameters=""):
        address = name if name in ACTIVATIONS else f"own_activations:{name}"
        text = problem_text(
            f'model = {{ activation = "{address}", activation_parameters = {{ {parameters} }} }}',
            'model = { learning_rate = 0.3, batch_size = 4, centering = "population" }',
            "augmentation = { variance = [0.3, 0.1], correlation = 0.4 }",
        )
        (folder / "problem.toml").write_text(text)
        return load_problem(folder / "problem.toml")

    yield load
    sys.modules.pop("own_activations", None)


def message(load, *arguments):
    with pytest.raises(InputError) as error:
        load(*arguments)
    return str(error.value)


def test_own_plain_function(own):
    """Its derivative by differences is that of a sigmoid by hand, but for rounding over the reach of the nodes."""
    activation = own("smooth").model.activation_functions
    for x in np.linspace(-12, 12, 61):
        for order in (0, 1):
            right = exact("sigmoid", order)(x)
            close = pytest.approx(right, rel=1e-14, abs=1e-12 * order)  # rounding of exp(12), and of differences
            assert compiled(activation, order)(x) == close
            assert (activation.value, activation.slope)[order](x) == close


def assert_same_closure(first, second):
    a, b = Closure(first), Closure(second)
    for q in (0.0, 0.3, -0.9):
        (g1, diffusion1), (g2, diffusion2) = a([q]), b([q])
        assert g1 == pytest.approx(g2, rel=1e-12, abs=1e-15)  # rounding: the same function, written differently
        assert diffusion1 == pytest.approx(diffusion2, rel=1e-12)  # the same
        assert diffusion2 > 1e-5


@pytest.mark.slow  # derivatives by differences are held against exact ones in tests/numerics/compiled
def test_own_function_without_derivative_trains_as_ours(own):
    assert_same_closure(own("smooth"), own("sigmoid"))


def test_own_activation_with_kinks_trains_as_ours(own):
    assert_same_closure(own("hard"), own("hard_tanh"))


def test_own_activation_of_a_parameter_trains_as_ours(own):
    assert_same_closure(own("leaky", "slope = 0.2"), own("leaky_relu", "slope = 0.2"))
    diffusions = [Closure(own(*arguments))([0.3])[1] for arguments in (("leaky", "slope = 0.2"), ("relu",))]
    assert abs(diffusions[0] / diffusions[1] - 1) > 0.1


@pytest.mark.parametrize(
    ("parameters", "value", "slope"),
    [("height = 2.0, tilt = 0.5", 2 * 0.09 + 0.15, 4 * 0.3 + 0.5), ("tilt = 0.5", 0.09 + 0.15, 2 * 0.3 + 0.5)],
)
def test_own_builder_of_several_parameters(own, parameters, value, slope):
    activation = own("parabola", parameters).model.activation_functions
    assert compiled(activation, 0)(0.3) == pytest.approx(value, rel=1e-15)  # rounding
    assert compiled(activation, 1)(0.3) == pytest.approx(slope, rel=1e-15)  # rounding


def test_own_wrong_derivative_is_refused(own):
    found = message(own, "wrong")
    for words in ("model.activation", ":wrong'", "numerical derivative", "correct the derivative", "kinks"):
        assert words in found
    place = float(found.partition(" at ")[2].split(",")[0])
    given = float(found.partition("' is ")[2].split(" ")[0])
    right = float(found.partition("numerical derivative is ")[2].split(";")[0])
    assert 2.5 < place < 2.8
    assert given == pytest.approx(2 * place**2, rel=1e-3)  # the place is shown with four digits
    assert right == pytest.approx(3 * place**2, rel=1e-3)  # the same


def test_own_kink_that_is_not_named_is_refused(own):
    found = message(lambda: Closure(own("unnamed_kink")))
    assert "model.activation is not smooth near 0.7" in found
    assert "name the point among the kinks" in found


def test_own_kink_without_a_derivative_is_refused(own):
    found = message(own, "bent")
    assert "the derivative of 'own_activations:bent': differences give it to" in found
    place = float(found.partition("only at ")[2].partition(",")[0])
    assert place == pytest.approx(0.7, abs=max(REACHES))  # within the reach of the nodes
    assert found.endswith("give one by meanfield.Activation(value, derivative, kinks), or name the kink")
