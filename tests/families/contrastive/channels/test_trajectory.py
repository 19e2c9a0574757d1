"""Trajectories of several channels: reference numbers, conservation, claimed errors, and what becomes of results."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive.channels import randomised as module
from meanfield.plotting import plot_result
from meanfield.report.key_numbers import of_the_limit
from meanfield.results.checks import check
from meanfield.results.result import Result
from tests.families.contrastive.channels.problems import standard

pytestmark = pytest.mark.usefixtures("plain_figures")


@pytest.fixture(scope="module")
def run():
    return meanfield.solve(standard(), "order_parameters")


def end(run):
    M = run["M"].values[-1]
    return np.concatenate([run["q"].values[-1].ravel(), M[np.triu_indices(len(M), 1)]])


def test_two_channels(run):
    right = [0.522272430115, 0.268815568852, 0.164533861956, 0.398376697050, 0.144565569382]
    np.testing.assert_allclose(end(run), right, atol=3e-12)  # digits of the reference, and tolerance of the steps
    assert run["q"].dims == ("time", "feature", "channel")
    assert run["M"].dims == run["D"].dims == run["Lambda"].dims == ("time", "channel", "channel_")
    assert run["P_gain"].dims == ("time", "feature", "channel")
    assert "g" not in run
    np.testing.assert_array_equal(run["M"].values[:, [0, 1], [0, 1]], 1.0)
    assert run["P_gain"].values[0, 0, 0] == pytest.approx(5.783285795833, abs=1e-12)


@pytest.mark.slow  # averages of three are in test_closure.py, and steps with three in test_particles.py
def test_three_channels():
    overlaps = "[[1, 0.25, 0.1], [0.25, 1, -0.2], [0.1, -0.2, 1]]"
    changes = (
        ("channels = 2", "channels = 3"),
        ("= 0.25", f"= {overlaps}"),
        ("0.3]", "0.3, 0.1]"),
        ("0.4]", "0.4, -0.3]"),
    )
    run = meanfield.solve(standard(*changes), "order_parameters")
    right = [
        0.513346333, 0.273639840, 0.096284664, 0.170617856, 0.381867858, -0.284292301, 0.149053880, 0.075769973,
        -0.132998567,
    ]  # fmt: skip
    np.testing.assert_allclose(end(run), right, atol=1e-9)  # digits of the reference


@pytest.mark.slow  # the rate is in test_states.py for coinciding channels, and averages of relu in test_closure.py
def test_channels_synchronise_by_the_noise_that_they_share():
    """ReLU that learns nothing: M12 follows the arc-cosine kernel, by an ODE of its own."""
    zero = (
        ("[0.5, 0.3]", "[0.0, 0.0]"),
        ("[0.2, 0.4]", "[0.0, 0.0]"),
        ("= 0.25", "= 0.0"),
        ("outputs = 2", "outputs = 3"),
    )
    rate = (
        ("quadratic", "relu"),
        ("0.01", "0.7"),
        ("batch_size = 3", "batch_size = 1"),
        ("strength = 0.05", "strength = 0.0"),
    )
    run = meanfield.solve(standard(*zero, *rate), "order_parameters")
    np.testing.assert_allclose(run["M"].values[1:, 0, 1], [0.414692, 0.613638], atol=1e-6)  # digits of the reference


@pytest.mark.parametrize(
    ("centering", "penalty"), [("population", "absolute"), ("none", "square")], ids=["fourier", "exact"]
)
def test_starts_that_nothing_moves_apart(centering, penalty):
    """Equal channels stay equal for every penalty; K is singular all the way."""
    same = ("[0.5, 0.3]", "[0.5, 0.5]"), ("[0.2, 0.4]", "[0.2, 0.2]"), ("= 0.25", "= 1.0"), ("stop = 4.0", "stop = 1.0")
    how = ('"none"', f'"{centering}"'), ("strength = 0.05", f'strength = 0.05\npenalty = "{penalty}"')
    run = meanfield.solve(standard(*same, *how, ("quadratic", "tanh"), ("= 3", "= 10")), "order_parameters")
    assert run.attrs["status"] == "complete"
    np.testing.assert_allclose(run["q"][..., 0], run["q"][..., 1], rtol=1e-9)  # tolerance of the steps
    np.testing.assert_allclose(run["M"], 1.0, atol=1e-9)


def test_random_batches_are_as_wrong_as_they_say(monkeypatch, tmp_path):
    """A user's square penalty takes random batches, whose errors are known exactly. One chance in 100, and a seed."""
    monkeypatch.setattr(module, "MOST_BATCHES", 2**7)
    (tmp_path / "own_square.py").write_text("def psi(x):\n    return x * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    tanh = ("quadratic", "tanh"), ("0.01", "0.3"), ('"none"', '"batch"'), ("stop = 4.0", "stop = 1.0")
    right = meanfield.solve(standard(*tanh, ("0.05", "0.5")), "order_parameters")
    found = meanfield.solve(
        standard(*tanh, ("strength = 0.05", 'strength = 0.5\npenalty = "own_square:psi"')), "order_parameters"
    )
    for name in ("q", "M"):
        gap, error = np.abs(found[name] - right[name]).values[-1], found[f"{name}_error"].values[-1]
        assert np.all(gap <= error)
        assert error.max() < 0.03  # 1024 batches: not much more than what they say
    assert (found["averages_standard_error"] > 0).all()
    assert "averages_standard_error" not in right


def test_overlaps_that_do_not_close_or_are_random_are_refused():
    with pytest.raises(InputError, match=r"prior.name = 'l1': the order parameters close only .* SGD"):
        meanfield.solve(standard(("[time]", '[prior]\nname = "l1"\n[time]')), "order_parameters")
    random = ("[0.5, 0.3]", '"random"'), ("[0.2, 0.4]", '"random"'), ("initial_channel_overlap = 0.25\n", "")
    with pytest.raises(InputError, match="stay at q = 0 from a random start"):
        meanfield.solve(standard(*random), "order_parameters")


def test_results_are_drawn_and_described(run):
    labels = [text.get_text() for text in plot_result(run).axes[0].get_legend().get_texts()]
    assert labels == ["$q_{11}$", "$q_{12}$", "$q_{21}$", "$q_{22}$"]
    numbers = dict(of_the_limit(run))
    assert numbers["overlap q12 at t = 4"] == "0.268816"
    assert numbers["overlap of channels M12 at t = 4"] == "0.144566"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda d: d.drop_vars("M"), "variable 'M' is missing"),
        (lambda d: d.assign(M=d["M"] + np.array([[0, 0.1], [0, 0]])), "'M' is not symmetric"),
        (lambda d: d.assign(M=0.5 * d["M"]), "'M' has no unit diagonal"),
        (lambda d: d.assign(Lambda=-d["Lambda"]), r"'Lambda' holds -.*, outside \[0, inf\]"),
        (lambda d: d.isel(channel=0), "missing"),
        (lambda d: d.isel(channel=[0]), "dim 'channel' has size 1, but the problem has 2"),
        (lambda d: d.assign(q=2.5 * d["q"]), r"'q' has \|q\|\^2"),
    ],
)  # fmt: skip
def test_what_no_channels_have_is_refused(run, spoil, words):
    with pytest.raises(InputError, match=words):
        check(Result.of(spoil(run)))


def augmented(first, second, covariance):
    correlation = covariance / (first * second) ** 0.5
    return "[time]", f"[augmentation]\nvariance = [{first}, {second}]\ncorrelation = {correlation!r}\n[time]"


def absolute(strength):
    return "strength = 0.05", f'strength = {strength}\npenalty = "absolute"'


BATCH = ('"none"', '"batch"')

CHAINS = [
    (
        (("learning_rate = 0.01", "learning_rate = 0.01"),),
        (0.52246, 0.26869, 0.16439, 0.39843, 0.14470),
        (0.00016, 0.00017, 0.00015, 0.00016, 0.00020),
    ),
    (
        (('"none"', '"population"'), ("= 3", "= 2"), ("0.05", "0.1"), augmented(0.3, 0.2, -0.1)),
        (0.4522, 0.2183, 0.1400, 0.3580, 0.1422),
        (0.0041, 0.0028, 0.0022, 0.0031, 0.0058),
    ),
    (
        (("quadratic", "tanh"), BATCH, ("0.01", "0.5"), ("0.05", "2.0")),
        (0.44286, 0.23392, 0.15452, 0.36216, 0.03170),
        (0.00032, 0.00046, 0.00038, 0.00034, 0.00041),
    ),
    (
        (("quadratic", "tanh"), ("0.01", "0.3"), ("= 3", "= 1"), absolute(0.5)),
        (0.46988, 0.27713, 0.18514, 0.37955, 0.19078),
        (0.00028, 0.00037, 0.00032, 0.00028, 0.00059),
    ),
    (
        (("quadratic", "relu"), BATCH, ("0.01", "0.2"), ("= 3", "= 10"), absolute(0.7)),
        (0.49587, 0.24786, 0.15729, 0.38924, 0.05960),
        (0.00022, 0.00022, 0.00019, 0.00026, 0.00029),
    ),
    (
        (("quadratic", "tanh"), ("0.01", "0.3"), ("= 3", "= 4"), absolute(0.7), augmented(0.3, 0.5, -0.2)),
        (0.45972, 0.27187, 0.17719, 0.37104, 0.13230),
        (0.00026, 0.00042, 0.00034, 0.00036, 0.00035),
    ),
]
"""Changes of the standard problem, and q11 q12 q21 q22 M12 at t = 4 of long simulations of SGD as a chain at N of 5000
and more, with their standard errors."""


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "mean", "error"), CHAINS, ids=["square", "noise", "tanh", "m1", "relu", "random"])
def test_trajectories_against_simulations(changes, mean, error):
    """False alarms: one of 30 numbers beyond 4 standard errors in 500 times, were both errors Gaussian."""
    run = meanfield.solve(standard(*changes), "order_parameters")
    own = np.zeros(5)
    if "q_error" in run:
        own = np.append(run["q_error"].values[-1].ravel(), run["M_error"].values[-1, 0, 1])
    assert np.all(np.abs(end(run) - mean) < 4 * np.array(error) + own)
