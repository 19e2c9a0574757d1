"""The example's phase diagram against routes that know nothing of sweeps, and its figure."""

from itertools import product

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from numpy.polynomial import Polynomial

import meanfield
from meanfield.errors import InputError
from meanfield.plotting.phase_diagram import REGIONS, plot_phase_diagram, region_of
from meanfield.problems.problem_keys import with_value, with_values
from meanfield.sweep import Sweep, run
from tests.sweep.conftest import Inside

TAU, M2 = "model.learning_rate", "features[0].hidden.second_moment"


@pytest.fixture(scope="module")
def example():
    return meanfield.load_sweep("data/sweeps/phase_diagram.toml")


def solved(example, folder, rates, moments):
    """The example at some of its learning rates and second moments."""
    axes = [
        {"key": axis.key, "values": [position[axis.key] for position in axis.settings(example.problem)][step]}
        for axis, step in zip(example.axes, (rates, moments), strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "LocalWorkers", Inside)
        return meanfield.run_sweep(Sweep.model_validate(dict(example) | {"axes": axes}), folder)


@pytest.fixture(scope="module")
def few(example, tmp_path_factory):
    return solved(example, tmp_path_factory.mktemp("few") / "out", slice(12, None, 12), slice(4, None, 8))


def test_thresholds_are_those_of_proposition_3(example, few):
    for tau in few["learning_rate"].values:
        threshold, _ = meanfield.contrastive.learnability(
            with_value(example.problem, TAU, float(tau))
        ).learnable_moments
        assert np.array_equal(region_of(few).sel(learning_rate=tau) == 2, few["second_moment"] > threshold)
        # theory.md, sections 7 and 8: at q = 0 Lambda = 240 tau^2/m and A = 12
        assert threshold == pytest.approx(1 + 10 * tau / example.problem.model.batch_size, rel=1e-12)  # rounding
    assert set(np.unique(region_of(few))) == {0.0, 1.0, 2.0}


def closed_form(problem):
    """The largest stable overlap of a quadratic network and a three-point feature: theory.md, section 8."""
    tau, m, law = problem.model.learning_rate, problem.model.batch_size, problem.features[0].hidden
    m2, m4 = law.second_moment, law.fourth_moment
    kappa, nu, beta = m4 - 3, m2 - 1, m4**2 / m2 - 15
    Q = Polynomial([0, 1])
    T6 = beta * Q**3 + 15 * kappa * Q**2 * (1 - Q) + 45 * nu * Q * (1 - Q) ** 2 + 15
    rate = 8 * tau * (1 - Q) * (kappa * Q**2 + 3 * nu * Q * (1 - 2 * Q)) - 16 * tau**2 / m * Q * T6
    roots = [x.real for x in rate.roots() if abs(x.imag) < 1e-9 and 1e-9 < x.real < 1]
    return max([x**0.5 for x in roots if rate.deriv()(x) < 0], default=0.0)


def test_similarities_are_those_of_the_closed_form(example, few):
    for tau, m2 in product(few["learning_rate"].values, few["second_moment"].values):
        expected = closed_form(with_values(example.problem, {TAU: float(tau), M2: float(m2)}))
        found = float(few["similarity"].sel(learning_rate=tau, second_moment=m2))
        assert found == pytest.approx(expected, abs=1e-9)  # roots to 1e-11 of the field's size, against a polynomial's


@pytest.mark.slow
def test_the_whole_diagram_follows_branches(example, tmp_path):
    whole = solved(example, tmp_path / "out", slice(None, None, 7), slice(None))
    m2 = whole["second_moment"].values
    for tau in whole["learning_rate"].values:
        problem = with_value(example.problem, TAU, float(tau))
        branches = meanfield.contrastive.continue_fixed_points(problem, M2, m2[0], m2[-1], points=21)
        expected = meanfield.contrastive.stationary_similarity(branches, m2)
        found = whole["similarity"].sel(learning_rate=tau)
        assert np.allclose(found, expected, rtol=0, atol=1e-9)  # roots of the same equations to 1e-11 of their size


def test_it_is_drawn_with_regions_and_names(few):
    axes = Figure().subplots()
    assert plot_phase_diagram(few, axes) is axes
    assert axes.get_xlabel() == r"learning rate $\tau$"
    assert axes.get_ylabel().replace("\n", " ") == "second moment $m_2$ of the hidden variable"
    assert {text.get_text() for text in axes.texts} == set(REGIONS)
    mesh = axes.collections[0]
    assert np.array_equal(mesh.get_array().reshape(6, 4), few["similarity"].T)
    assert len(axes.collections) == 3  # and two lines
    axes.figure.canvas.draw()


def test_the_line_of_growth_from_nothing_is_the_threshold_between_points(few):
    lines = plot_phase_diagram(few, Figure().subplots()).collections[2].get_paths()
    tau, m2 = np.concatenate([path.vertices for path in lines]).T
    spacing = few["second_moment"].diff("second_moment").values[0]
    along = np.isclose(tau[:, None], few["learning_rate"].values, rtol=1e-12).any(axis=1)  # rounding
    assert np.count_nonzero(along) >= 2
    # rates are linear in m2, of which the threshold is 1 + 10 tau/m with m = 10: rounding of fixed points' Jacobians
    assert m2[along] == pytest.approx(1 + tau[along], abs=1e-9 * spacing)


def test_logarithms_words_and_points_without_a_number():
    values = xr.Dataset({"status": (("a", "b"), [["complete"] * 3, ["failed: x"] * 3])})
    values["similarity"] = (("a", "b"), [[0.1, 0.2, 0.3], [np.nan] * 3], {"long_name": "similarity"})
    values = values.assign_coords(a=["relu", "abs"], b=[1.0, 10.0, 100.0])
    values["a"].attrs.update(key="model.activation", scale="linear")
    values["b"].attrs.update(key="model.batch_size", scale="log")
    axes = plot_phase_diagram(values, Figure().subplots())
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["relu", "abs"]
    assert axes.get_yscale() == "log"
    assert axes.get_ylim() == pytest.approx((10**-0.5, 10**2.5), rel=1e-12)  # rounding
    assert axes.collections[0].get_array().mask.sum() == 3
    for name in ("nothing", "status"):
        with pytest.raises(InputError, match=f"'{name}' is no number over two axes; the sweep has similarity"):
            plot_phase_diagram(values, Figure().subplots(), name)
    with pytest.raises(InputError, match="the sweep has none"):
        plot_phase_diagram(values.drop_vars("similarity"), Figure().subplots())


def test_with_several_methods_the_name_of_one_may_be_left_out(example, few):
    both = few.rename({name: f"fixed_points_{name}" for name in few.data_vars if name != "status"})
    both["order_parameters_q_final"] = few["similarity"].copy()
    axes = plot_phase_diagram(both, Figure().subplots())
    assert {text.get_text() for text in axes.texts} == set(REGIONS)
    assert np.array_equal(axes.collections[0].get_array().reshape(6, 4), few["similarity"].T)
    assert not plot_phase_diagram(both, Figure().subplots(), "q_final").texts  # not of the method that has regions
    both["stationary_similarity"] = few["similarity"].copy()
    with pytest.raises(InputError, match=r"'similarity' is no number .* has .*fixed_points_similarity"):
        plot_phase_diagram(both, Figure().subplots())
