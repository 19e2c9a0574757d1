"""Order parameters against reference numbers, closed forms, and symmetries of the equations."""

import math

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.hidden_manifold.order_parameters import fluctuations as covariance
from meanfield.problems.problem_keys import with_values
from tests.families.hidden_manifold.problems import FIRST, numbers, solved

DIGITS = 6e-10
"""Half a unit of the last digit of the reference numbers, and 1e-10 for both solutions."""

SHORT = {"time": {"stop": 10.0, "outputs": 3}}
RELU = {
    "inputs": {"nonlinearity": "tanh"},
    "teacher": {"activation": "relu", "output_weights": [1.0, 0.8]},
    "student": {"activation": "relu", "output_weights": [0.5, 0.3]},
    "training": {"output_learning_rate": 0.2},
    "time": {"stop": 50.0, "outputs": 6},
}


def two_scales(*scales):
    return {"inputs": {"components": [{"weight": 0.5, "scale": s} for s in scales]}}


REFERENCES = {
    "erf": (
        {},
        {
            0: (0.592295780, 0.017049297, 0.563880285, 0.239365368, 0, 0.039894228, 0.199471140, 0.4069795843),
            10: (
                *(0.562886502, -0.034870046, 0.558156791),
                *(0.392251125, 0.171412767, 0.173513276, 0.388459165, 0.1448312741),
            ),
            100: (
                *(0.486610850, 0.061682152, 0.485643531),
                *(0.457734034, 0.145276518, 0.144836805, 0.457198569, 0.1227107335),
            ),
        },
    ),
    "relu": (
        RELU,
        {
            10: (
                *(0.621597947, 0.101931275, 0.470116698),
                *(0.474949000, 0.152579503, 0.150712050, 0.321526888, 0.2361866127),
            ),
            50: (
                *(0.810796867, 0.143013614, 0.673856502),
                *(0.764115450, 0.206782834, 0.174023620, 0.607586970, 0.0762684711),
            ),
        },
    ),
    "two scales": (
        two_scales(0.4, math.sqrt(1.84)),
        {
            10: (
                *(0.514862142, -0.131065422, 0.510209270),
                *(0.305486372, 0.106000845, 0.107720241, 0.302180840, 0.1470524997),
            ),
            100: (
                *(0.428241292, -0.055220209, 0.427171140),
                *(0.342125473, 0.089695240, 0.089168165, 0.341509407, 0.1275020442),
            ),
        },
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_reference_numbers(name):
    """Numbers of a program that has the printed I3 forms, other nodes, and another integrator."""
    changes, expected = REFERENCES[name]
    result = solved(**changes)
    assert result.attrs["status"] == "complete"
    for t, values in expected.items():
        assert numbers(result, t) == pytest.approx(values, abs=DIGITS)
    if name == "relu":
        v = [[0.7529509975, 0.5402756221], [1.0245277002, 0.7846174059]]
        assert result["v"].values[[1, 5]] == pytest.approx(np.array(v), abs=DIGITS)


ONE = {"output_weights": [1.0]}
LINEAR = {
    "teacher": ONE | {"activation": "linear", "overlap": [[1.0]]},
    "student": ONE | {"activation": "linear", "on_teacher": [[0.0]], "elsewhere": [[1.0]]},
    "time": {"stop": 50.0, "outputs": 6},
}


def test_a_linear_student_has_a_closed_form():
    result = solved(**LINEAR)
    b2, rho, weight = 2 / math.pi, result["rho"].values, result["rho_weight"].values
    d = (1 - b2) * 0.5 + b2 * rho
    R = [weight @ (b2 * rho / d * (1 - np.exp(-0.2 * d * t / 0.5))) for t in result["time"].values]
    assert result["R"].values.ravel() == pytest.approx(np.array(R), abs=1e-10)  # of steps
    assert result["R"].values.ravel()[[1, 5]] == pytest.approx([0.64246552605, 0.69541440473], abs=DIGITS)
    assert result["Q"].values.ravel()[1] == pytest.approx(0.6938815290, abs=DIGITS)
    errors = result["generalisation_error"].values[[1, 5]]
    assert errors == pytest.approx([0.20447523845, 0.16919334300], abs=DIGITS)


@pytest.mark.parametrize("changes", [{}, RELU, two_scales(0.4, 1.3)], ids=["erf", "relu", "scales"])
def test_the_estimate_bounds_the_error(changes):
    exact = solved(**changes)
    for tolerance in (1e-3, 1e-5):
        result = solved(**changes | {"order_parameters": {"tolerance": tolerance}})
        for name in ("Q", "R", "generalisation_error"):
            error = np.abs(result[name].values - exact[name].values).max()
            estimate = float(result[f"{name}_error"].max())
            assert error <= estimate + 1e-9  # of what is exact
            assert estimate <= tolerance


def test_the_estimate_bounds_the_error_at_all_times():
    """Two solutions agree by chance at single times, and their difference there was up to 30 times too small."""
    problem = meanfield.load_problem("data/problems/hidden_manifold.toml")
    rough, fine = (
        meanfield.solve_order_parameters(
            with_values(problem, {"time": {"stop": 20.0, "outputs": 21}, "order_parameters.tolerance": tolerance})
        )
        for tolerance in (1e-3, 1e-7)
    )
    for name in ("Q", "R", "generalisation_error"):
        allowed = rough[f"{name}_error"] + fine[f"{name}_error"]  # both as they claim
        assert (abs(rough[name] - fine[name]) <= allowed).all(), name


def same(first, second, tolerance=1e-9):
    """Whether two results agree to ten times what each is right to."""
    for name in ("Q", "R", "generalisation_error", "v", "Omega"):
        assert np.abs(first[name].values - second[name].values).max() < tolerance, name


MEANS = [{"weight": 0.25, "mean": [1.5, 0.3], "scale": 0.8}, {"weight": 0.75, "mean": [-0.5, -0.1], "scale": 1.1}]


def test_components_that_are_alike_are_one():
    single = solved(**SHORT)
    same(single, solved(**SHORT | two_scales(1.0, 1.0)))
    same(single, solved(**SHORT | {"inputs": {"components": [{"weight": 1.0, "mean": [0.0, 0.0]}]}}))
    halves = [MEANS[0] | {"weight": 0.125}, MEANS[0] | {"weight": 0.125}, MEANS[1]]
    same(*(solved(**SHORT | {"inputs": {"components": c}}) for c in (MEANS, halves)))


def test_coordinates_that_draw_components_are_gaussian():
    """By the central limit theorem; what is left of a mixture is its variance."""
    drawn = {"components_drawn": "coordinate"}
    unit = [{"weight": 0.3, "mean": -0.7, "scale": 0.6}, {"weight": 0.7, "mean": 0.3}]
    s = math.sqrt(0.3 * (0.36 + 0.49) + 0.7 * 1.09)
    result = solved(**SHORT | {"inputs": drawn | {"components": unit}})
    same(result, solved(**SHORT | {"inputs": {"components": [{"weight": 1.0, "scale": s}]}}))


@pytest.mark.parametrize("as_list", [False, True])
def test_means_that_cancel_to_rounding_cancel(as_list):
    """Standardised mixtures have the mean 0 to rounding alone."""
    weights, means = (0.1, 0.2, 0.7), (1.0, 1.0, -3 / 7)
    assert sum(p * mean for p, mean in zip(weights, means, strict=True)) != 0
    mixed = [{"weight": p, "mean": [x, 0.0] if as_list else x} for p, x in zip(weights, means, strict=True)]
    variance = 1.0 + (0.0 if as_list else 3 / 7)
    result = solved(**SHORT | {"inputs": {"components_drawn": "coordinate", "components": mixed}})
    same(result, solved(**SHORT | {"inputs": {"components": [{"weight": 1.0, "scale": math.sqrt(variance)}]}}))
    assert not result["field_mean"].any()


@pytest.mark.parametrize("activation", ["scaled_erf", "relu"])
def test_the_order_of_units_does_not_matter(activation):
    """Nor, for an odd activation, their signs, whatever components there are."""
    own = {"teacher": {"activation": activation}, "training": {"output_learning_rate": 0.1}}
    inputs = {"inputs": {"components": MEANS if activation == "scaled_erf" else []}}
    student = {"activation": activation, "output_weights": [0.5, 0.3]}
    flipped = {
        "activation": activation,
        "output_weights": [0.3, 0.5],
        "on_teacher": FIRST["student"]["on_teacher"][::-1],
    }
    first = solved(**SHORT | own | inputs | {"student": student})
    second = solved(**SHORT | own | inputs | {"student": flipped})
    assert np.abs(first["R"].values - second["R"].values[:, ::-1]).max() < 1e-9
    if activation == "scaled_erf":
        sign = {"output_weights": [-0.5, 0.3], "on_teacher": [[-0.3, 0.0], [0.05, 0.25]]}
        third = solved(**SHORT | own | inputs | {"student": student | sign})
        assert np.abs(first["R"].values * np.array([[-1.0], [1.0]]) - third["R"].values).max() < 1e-9
        assert np.abs(first["generalisation_error"] - third["generalisation_error"]).max() < 1e-9


def test_relu_units_can_be_rescaled():
    """W -> x W and v -> v/x leave the network, and what it does at the start."""
    scaled = RELU["student"] | {
        "output_weights": [0.25, 0.3],
        "on_teacher": [[0.6, 0.0], [0.05, 0.25]],
        "elsewhere": [[1.96, 0.0], [0.0, 0.49]],
    }
    errors = [
        solved(**SHORT | RELU | {"student": s})["generalisation_error"].values[0] for s in (RELU["student"], scaled)
    ]
    assert errors[0] == pytest.approx(errors[1], abs=1e-13)  # rounding


def test_eigenvalues_one_by_one_are_those_with_weights(monkeypatch):
    monkeypatch.setattr(covariance, "MOST_NUMBERS", 0)  # fluctuations are tested elsewhere
    half = {"law": "atoms", "eigenvalues": [0.4, 1.6], "teacher": [0.2, 1.8]}
    listed = {"law": "atoms", "eigenvalues": [0.4, 0.4, 1.6, 1.6], "teacher": [0.2, 0.2, 1.8, 1.8]}
    weighted = half | {"weights": [0.5, 0.5]}
    results = [solved(**SHORT | {"inputs": {"spectrum": s}}) for s in (half, listed, weighted)]
    same(results[0], results[1])
    same(results[0], results[2])
    moved = solved(**SHORT | {"inputs": {"spectrum": {"law": "atoms", "eigenvalues": [0.4, 1.6]}}})
    assert abs(moved["R"].values[-1, 0, 0] - results[0]["R"].values[-1, 0, 0]) > 0.01  # where the teacher is matters


def test_any_activation_by_quadrature():
    """One that is erf(x/sqrt 2) by another name, whose closed form is not known, with means of the fields."""
    components = [{"weight": 0.25, "mean": [1.5], "scale": 0.8}, {"weight": 0.75, "mean": [-0.5]}]
    results = []
    for name in ("scaled_erf", "tests.families.hidden_manifold.problems:SLOW"):
        teacher = {"activation": name, "overlap": [[1.0]], "output_weights": [1.0]}
        student = {"activation": name, "on_teacher": [[0.3], [0.05]]}
        rest = {"inputs": {"components": components}, "order_parameters": {"tolerance": 1e-5}}
        results.append(solved(**rest, teacher=teacher, student=student, time={"stop": 1.0, "outputs": 2}))
    same(*results, 1e-5)


def test_units_that_start_alike_stay_alike():
    """As those of a random start do in the limit: what tells them apart is of order 1/sqrt(N)."""
    random = {"student": {"initial": "random", "variance": 0.5, "on_teacher": None, "elsewhere": None}}
    result = solved(**SHORT | random)
    assert np.abs(result["Q"].values[0] - 0.5 * np.eye(2)).max() < 1e-12  # Omega = Sigma = 0.5, and f^2 has the mean 1
    R = result["R"].values
    assert np.abs(R[0]).max() == 0.0
    assert np.abs(R - R[:, :1, :1]).max() < 1e-12  # rounding
    assert R[-1, 0, 0] > 0.1


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"nonlinearity": "relu", "centered": False}, "has the mean 0.398942"),
        ({"nonlinearity": "relu", **two_scales(0.5, 1.5)["inputs"]}, "has other means at other"),
        (
            {"components_drawn": "coordinate", "centered": False, "components": [{"weight": 1.0, "mean": 0.5}]},
            "every latent has the mean 0.5",
        ),
    ],
)
def test_inputs_with_a_mean_have_no_equation_of_their_own(inputs, words):
    with pytest.raises(InputError, match=words):
        solved("density", inputs=inputs)


def test_quadrature_over_many_fields_is_refused():
    five = {"output_weights": [1.0] * 5, "activation": "tanh"}
    student = five | {"initial": "random", "on_teacher": None, "elsewhere": None}
    with pytest.raises(InputError, match="quadrature over the fields of 10 units takes hours; take at most 8"):
        solved(teacher=five | {"overlap": np.eye(5).tolist()}, student=student)


def test_a_blow_up_ends_the_run():
    """A step size that is too large for a linear student: its weights grow without bound."""
    result = solved(**LINEAR | {"training": {"learning_rate": 50.0}})
    assert result.attrs["status"].startswith("failed: at t = ")
    assert "lower training.learning_rate" in result.attrs["status"]
    assert np.isnan(result["Q"].values[-1]).all()
