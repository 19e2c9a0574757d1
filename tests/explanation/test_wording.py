import math

import numpy as np
import pytest

from meanfield.explanation import in_words
from meanfield.families.contrastive.explanation.wording import moments
from meanfield.ingredients.laws.hidden import (
    Gaussian,
    GaussianMixture,
    Laplace,
    StudentT,
    ThreePoint,
    TwoPoint,
    Uniform,
)
from meanfield.problems.file import format_problem, parse_problem
from tests.example_problems import feature, features, gaussian, make_problem


def words(*lines):
    return dict(in_words(make_problem(*lines)))


@pytest.mark.parametrize(
    ("law", "second", "kurtosis"),
    [
        (Gaussian(second_moment=1.7), 1.7, 3.0),
        (ThreePoint(second_moment=1.1, fourth_moment=6.05), 1.1, 5.0),
        (Uniform(second_moment=2.0), 2.0, 1.8),
        (Laplace(second_moment=1.5), 1.5, 6.0),
        (StudentT(degrees_of_freedom=10.0, second_moment=1.5), 1.5, 4.0),
        (StudentT(degrees_of_freedom=4.0), 1.0, math.inf),
        (TwoPoint(values=(-1.0, 1.0)), 1.0, 1.0),
        (GaussianMixture(means=(-1.0, 1.0), variances=(0.0, 0.0), probabilities=(0.5, 0.5)), 1.0, 1.0),
    ],
)
def test_moments_are_those_of_textbooks(law, second, kurtosis):
    assert moments(law) == pytest.approx((second, kurtosis), rel=1e-9)  # quadratures of laws have nine digits


def test_what_is_trained_is_said():
    said = words('model.activation = "relu"', 'model.centering = "batch"')
    assert "relu: grows like |x|^1, kink at 0" in said["network"]
    assert "tau = 0.02, batches of m = 10" in said["training"]
    assert "tau/m = 0.002" in said["training"]
    assert "mean over the batch" in said["training"]
    assert words('model.activation = "tanh"')["network"].endswith("bounded, no kinks")


def test_noise_is_the_similarity_of_two_views():
    assert "sample itself" in words()["noise"]
    # (1 - 0.3)/(1 + 0.3)
    opposite = words("augmentation = { variance = [0.3, 0.3], correlation = -1.0 }")["noise"]
    assert "opposite" in opposite
    assert f"{0.7 / 1.3:.3g}" in opposite


def test_features_have_numbers_and_their_starts():
    two = words(features(feature(0.4), feature(0.2, gaussian(1.5), "rademacher")))
    assert "E[c^2] = 2, kurtosis 2 (Gaussian: 3)" in two["feature 1"]
    assert "starts at q = 0.2" in two["feature 2"]
    assert "Rademacher" in two["feature 2"]
    assert "starts at random" in words(features(feature("random")))["feature"]


def test_prior_says_whether_the_order_parameters_close():
    assert "do not close" in words('prior = { name = "l1", strength = 2.0 }')["prior"]
    assert words('prior = { name = "l2" }')["prior"].endswith("order parameters close")


def test_steps_are_counted():
    assert "takes 1,280 steps" in words()["time"]  # 20 x 64


def test_joint_laws_say_how_dependent_they_are():
    joint = '{ law = "discrete", values = [[1.0, 0.5], [-1.0, -0.5]], probabilities = [0.5, 0.5] }'
    said = words(f"hidden = {joint}", "features = [{ initial_overlap = 0.3 }, { initial_overlap = 0.1 }]")
    assert "E[c^2] = 1, 0.25; largest correlation 1" in said["hidden"]


def test_nothing_that_a_stored_problem_names_is_opened(tmp_path, monkeypatch):
    (tmp_path / "spy.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    text = format_problem(make_problem()).replace('activation = "quadratic"', 'activation = "spy:f"')
    text = text.replace('name = "none"', 'name = "spy:g"')
    said = dict(in_words(parse_problem(text, trusted=False), look_up=False))
    assert "'spy:f' (a user's own, not looked up)" in said["network"]
    assert "'spy:g'" in said["prior"]
    samples = tmp_path / "samples.npy"
    np.save(samples, np.array([1.0, -1.0]))
    hidden = f'{{ law = "empirical", file = "{samples}" }}'
    stored = parse_problem(format_problem(make_problem(features(feature(0.3, hidden)))), trusted=False)
    samples.unlink()
    assert "(not opened)" in dict(in_words(stored, look_up=False))["feature"]


def test_phases_have_a_line_each_in_the_words_of_the_family():
    rate = '{ schedule = "linear", start = 0.1, end = 0.2, duration = 9.0 }'
    hidden = '{ law = "gaussian", second_moment = 2.0 }'
    said = words(
        f"phases = [{{ stop = 5.0 }}, {{ stop = 9.0, set = {{ 'model.learning_rate' = {rate}, 'prior.name' = 'l1', "
        f"'prior.strength' = 0.5, 'features[0].hidden' = {hidden} }} }}, {{ stop = 20.0 }}]"
    )
    assert said["phase 1"] == "t = 0 to 5: as above"
    assert said["phase 2"] == (
        't = 5 to 9: learning rate tau = linear from 0.1 to 0.2 at t = 9; prior.name = "l1"; strength of the prior = '
        '0.5; features[0].hidden = { law = "gaussian", second_moment = 2 }'
    )
    assert said["phase 3"] == "t = 9 to 20: nothing changes"


def test_what_the_first_phase_sets_is_what_is_said_of_the_problem():
    said = words("phases = [{ stop = 20.0, set = { 'model.learning_rate' = 0.5 } }]")
    assert "tau = 0.5," in said["training"]
    assert said["phase 1"] == "t = 0 to 20: as above"


def test_schedules_are_in_words_where_numbers_stand():
    said = words('model.learning_rate = { schedule = "exponential", start = 0.1, rate = 0.3 }')
    assert "tau = 0.1 exp(-0.3 t), batches" in said["training"]
