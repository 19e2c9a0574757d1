"""The whole analysis: that its parts are those of the rooms it comes from, and what is absent where."""

import numpy as np
import pytest

import meanfield
from meanfield.families.contrastive import dynamics as analysis
from meanfield.families.contrastive.dynamics import describe
from meanfield.families.contrastive.fixed_points.points import find_fixed_points
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.order_parameters.trajectory import StepNoise, stationary_covariance
from meanfield.families.contrastive.random_starts import (
    escape_law,
    find_separatrix,
    random_start,
    selection_probability,
)
from meanfield.plotting import plot_dynamics
from meanfield.problems.file import parse_problem
from meanfield.results.files import load, save
from tests.example_problems import make_problem

GAUSSIAN = '{ law = "gaussian", second_moment = 1.2 }'
THREE_POINT = '{ law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }'


def problem_with(*laws, **model):
    model = {"activation": "quadratic", "centering": "none", "learning_rate": 0.04, "batch_size": 20} | model
    lines = "\n".join(f"{key} = {value!r}" for key, value in model.items())
    features = "\n".join(f"[[features]]\nhidden = {law}\ninitial_overlap = 0.1" for law in laws)
    return parse_problem(f"[model]\n{lines}\n{features}\n[time]\nstop = 1.0\noutputs = 2\n")


@pytest.fixture(scope="module")
def two():
    """Chances at two dimensions, one a thousand times the other: they take nearly all of the time."""
    problem = problem_with(GAUSSIAN, THREE_POINT)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(analysis, "DIMENSIONS", (1e3, 1e6))
        return problem, meanfield.contrastive.analyse_dynamics(problem)


def test_two_features_have_all_parts(two):
    problem, dynamics = two
    points = find_fixed_points(VectorField(problem))
    shown = [i for i, point in enumerate(points.points) if np.all(point.q >= 0)]
    assert np.array_equal(dynamics["q"], points.q[shown])
    assert dynamics["kind"].values.tolist() == [points.points[i].kind for i in shown]
    assert float(dynamics["region_share"].sum()) == pytest.approx(1.0, abs=0.01)  # cells on the border are undecided
    field, noise = VectorField(problem), StepNoise(VectorField(problem))
    for i, state in enumerate(dynamics["stability"].values):
        if state == 1:
            right = stationary_covariance(field, noise, dynamics["q"].values[i])
            assert np.array_equal(dynamics["q_covariance"][i], right)
        else:
            assert np.isnan(dynamics["q_covariance"][i]).all()
    assert dynamics["uninformed_rate"].values == pytest.approx(np.diag(field.jacobian(np.zeros(2))), abs=1e-10)  # h^4
    assert len(plot_dynamics(dynamics).axes) == 1 + ("escape_time_quantile" in dynamics) + ("win_chance" in dynamics)


def test_chances_are_those_of_the_separatrix(two):
    problem, dynamics = two
    start = random_start(problem)
    separatrix = find_separatrix(start)
    assert np.all(dynamics["win_chance"].sum("feature") == 1.0)
    for N, chances in zip(dynamics["dimension"].values, dynamics["win_chance"].values, strict=True):
        right = selection_probability(separatrix, start, N)
        assert chances[1] == pytest.approx(right, abs=0.006)  # 1024 evenly spread amplitudes: 1024^(-3/4)


def test_one_feature_escapes_by_the_law_in_closed_form():
    problem = problem_with(THREE_POINT)
    dynamics = meanfield.contrastive.analyse_dynamics(problem)
    assert "win_chance" not in dynamics
    law = escape_law(random_start(problem), float(dynamics["escape_time_quantile"].attrs["escape_overlap"]))
    for i, N in enumerate(dynamics["dimension"].values[1:], 1):
        right = [law.quantile(p, N) for p in dynamics["quantile"].values]
        found = dynamics["escape_time_quantile"].values[i]
        assert found == pytest.approx(right, rel=0.01)  # 1/1024 of probability, in tails of some tenths of 1/rate
    assert dynamics["region_share"].values.tolist() == pytest.approx([0.5, 0.0, 0.5])
    assert dynamics["rate"].values == pytest.approx(VectorField(problem)(dynamics["line"].values[:, None])[:, 0])


@pytest.mark.parametrize(
    ("problem", "absent", "said"),
    [
        (
            problem_with(THREE_POINT, centering="batch"),
            {"q_covariance", "escape_time_quantile"},
            "growth rates at q = 0",
        ),
        (problem_with(THREE_POINT, learning_rate=1.0), {"escape_time_quantile"}, "stable node"),
        (
            problem_with('{ law = "discrete", values = [0.0, 2.0], probabilities = [0.7, 0.3] }', activation="relu"),
            {"uninformed_rate", "escape_time_quantile"},
            "q = 0 is not stationary",
        ),
        # nothing is absent here, and two features are drawn above; the circle is found in fixed_points/test_points.py
        pytest.param(problem_with(GAUSSIAN, GAUSSIAN), set(), "marginal", marks=pytest.mark.slow),
        (problem_with(*[THREE_POINT] * 3), {"rate", "q_cell", "escape_time_quantile"}, "saddle"),
    ],
    ids=["batch", "nothing grows", "a mean", "a circle of states", "three features"],
)
def test_what_a_problem_does_not_have_is_absent(problem, absent, said, tmp_path, monkeypatch):
    monkeypatch.setattr(analysis, "AMPLITUDES", 16)  # what is there does not depend on how many
    dynamics = meanfield.contrastive.analyse_dynamics(problem)
    assert not absent & set(dynamics.variables)
    assert said in describe(dynamics)
    save(dynamics, tmp_path / "dynamics.nc")
    figure = plot_dynamics(load(tmp_path / "dynamics.nc"))
    assert len(figure.axes) == 1 + ("escape_time_quantile" in dynamics) + ("win_chance" in dynamics)


def test_priors_that_do_not_close_are_refused():
    problem = make_problem('prior = { name = "l1", strength = 1.0 }')
    with pytest.raises(meanfield.InputError, match=r"prior\.name = 'l1'"):
        meanfield.contrastive.analyse_dynamics(problem)
