"""SGD of several channels as users run it: starts, results, statistics, threads, resumption, and the limit."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import beta, ks_2samp, kstest

import meanfield
from meanfield.ensembles.checkpoint import Checkpoint
from meanfield.ensembles.simulation import predicted_memory
from meanfield.ensembles.streams import stream_key
from meanfield.errors import InputError
from meanfield.families.contrastive.reductions import arrangement
from meanfield.families.contrastive.sgd.channels.steppers import CHANNEL_STEPPERS
from meanfield.families.contrastive.sgd.simulation import simulate_sgd, simulation_of
from meanfield.families.contrastive.sgd.start import draw_channel_coordinates, draw_channel_weights, draw_features
from meanfield.results.checks import check
from meanfield.results.result import Result
from tests.families.contrastive.channels.problems import standard
from tests.families.contrastive.sgd.test_checkpoint import Interrupting, in_short_calls
from tests.families.contrastive.sgd.test_memory import peak_of

STANDARD_ERRORS = 3.5


def small(*changes, particles=""):
    """The standard state at small N with large steps."""
    table = f"[particles]\ndimension = 30\nreplicas = 5\n{particles}\n[time]\nstop = 1.0\noutputs = 5"
    large = ("learning_rate = 0.01", "learning_rate = 0.1")
    return standard(large, *changes, ("[time]\nstop = 4.0\noutputs = 2", table))


RANDOM = ("[0.5, 0.3]", '"random"'), ("[0.2, 0.4]", '"random"'), ("initial_channel_overlap = 0.25", "")
METHODS = ("plain", "projected", "chain")


@pytest.mark.parametrize("method", METHODS)
def test_results_have_channels(method):
    problem = small(particles=f'method = "{method}"')
    run = simulate_sgd(problem)
    check(Result.of(run))
    assert run.q.dims == ("replica", "time", "feature", "channel")
    assert run.M.dims == ("replica", "time", "channel", "channel_")
    assert run.r.dims == ("replica", "time", "channel")
    start = run.isel(time=0)
    for replica in range(5):
        np.testing.assert_allclose(start.q[replica], problem.initial_overlap, atol=1e-14)  # exact: rounding
        np.testing.assert_allclose(start.M[replica], problem.initial_channel_overlap, atol=1e-14)  # exact: rounding
    np.testing.assert_allclose(np.einsum("rtkk->rtk", run.M), 1.0, atol=1e-13)  # on the sphere: rounding
    assert np.ptp(run.M.values[:, -1, 0, 1]) > 0.05  # replicas differ
    if method == "chain":
        return
    assert run.weights.dims == ("replica", "snapshot_time", "coordinate", "channel")
    w, U = run.weights.values[:, -1], run.U.values
    np.testing.assert_allclose(run.q.values[:, -1], np.einsum("rnf,rnk->rfk", U, w) / 30, atol=1e-13)  # rounding
    np.testing.assert_allclose(run.M.values[:, -1], np.einsum("rnj,rnk->rjk", w, w) / 30, atol=1e-13)  # rounding


@pytest.mark.parametrize("method", METHODS)
def test_random_channels_are_independent_and_uniform(method):
    """Squares of overlaps are beta variables, and pairs of channels have those of two independent vectors.

    Fixed seeds; false-alarm rate 1e-3 of the three cases together (Bonferroni).
    """
    if method == "chain":
        X = draw_channel_coordinates(small(*RANDOM), stream_key(3), range(20_000))
        q, M = X[:, :, :2], X @ X.swapaxes(1, 2)
    else:
        problem, rng = small(*RANDOM, particles=f'method = "{method}"'), np.random.default_rng(METHODS.index(method))
        U = draw_features(problem, rng)
        W = np.array([draw_channel_weights(problem, U, rng) for _ in range(4000)])
        q, M = W @ U / 30, W @ W.swapaxes(1, 2) / 30
    squares = np.concatenate([q.reshape(-1, 4).T ** 2, M[None, :, 0, 1] ** 2])
    p = [kstest(beta.cdf(x, 0.5, 14.5), "uniform").pvalue for x in squares]  # N = 30
    p += [kstest(np.sign(x), [-1.0, 1.0] * 500).pvalue for x in (M[:, 0, 1], q[:, 0, 0], q[:, 1, 0])]
    p += [ks_2samp(q[:, 0, 0] * q[:, 1, 0], q[:, 0, 1] * np.roll(q[:, 1, 1], 1)).pvalue]
    assert min(p) > 1e-3 / 3 / len(p)  # false-alarm rate of the docstring


@pytest.mark.parametrize(("first", "sign"), [("[0.3, 0.3]", 1.0), ("[0.3, -0.3]", -1.0)])
def test_collapsed_channels_stay_collapsed(first, sign):
    """Equal channels see the same gradient, and opposite ones an opposite one if sigma is even, to the last bit."""
    same = (
        ("[0.5, 0.3]", first),
        ("[0.2, 0.4]", first.replace("0.3", "0.6")),
        ("overlap = 0.25", f"overlap = {sign}"),
    )
    q = simulate_sgd(small(*same, particles='method = "chain"')).q.values
    assert np.array_equal(q[..., 0], sign * q[..., 1])
    assert np.ptp(q[:, -1, 0, 0]) > 0.05  # while they move


def test_channels_that_differ_by_little_separate_at_the_rate_of_the_theory():
    """lambda = 0, both on one feature: 1 - M12 ~ e^{kappa t}, from 1e-12 on, where M - q^T q has lost it.

    kappa = 8 tau (3 T2 - T4) + 16 (tau^2/m)(9 T4 - T6), T_n the moments of Theta; here at the start, for a short time.
    """
    Q = 0.81
    text = (("[decorrelation]\nstrength = 0.05", ""), ("[0.5, 0.3]", "[0.9, 0.9]"), ("[0.2, 0.4]", "[0.0, 0.0]"))
    near = ("overlap = 0.25", "overlap = 0.999999999999"), ("outputs = 2", "outputs = 5"), ("stop = 4.0", "stop = 0.5")
    table = ("[time]", "[particles]\ndimension = 4000\nreplicas = 64\nseed = 5\n[time]")
    run = simulate_sgd(standard(*text, *near, table))
    tau, m, rest = 0.01, 3, 1 - Q
    second = 1.1 * Q + rest
    fourth = 6.05 * Q**2 + 6 * 1.1 * Q * rest + 3 * rest**2
    sixth = 33.275 * Q**3 + 15 * 6.05 * Q**2 * rest + 45 * 1.1 * Q * rest**2 + 15 * rest**3
    kappa = 8 * tau * (3 * second - fourth) + 16 * tau**2 / m * (9 * fourth - sixth)
    assert kappa < -0.1
    growth = (1 - run.M.values[:, :, 0, 1]) / 1e-12
    assert growth[:, 0] == pytest.approx(1.0, rel=1e-3)  # 1 - M12 by double numbers, to 1e-16/1e-12
    measured = np.log(growth[:, -1].mean()) / 0.5
    error = growth[:, -1].std(ddof=1) / 8 / growth[:, -1].mean() / 0.5
    # Student's t of 63 degrees of freedom: a false alarm with probability 1e-3; and the drift of q by then
    assert abs(measured - kappa) < 3.5 * error + 0.1 * abs(kappa)
    assert error < 0.1 * abs(kappa)


def test_statistics_are_those_of_the_record():
    whole = simulate_sgd(small(particles="snapshots = []"))
    summed = simulate_sgd(small(particles='record = "statistics"'), workers=1)
    check(Result.of(summed))
    q, M = whole.q.values, whole.M.values
    np.testing.assert_allclose(summed.q_mean, q.mean(axis=0), atol=1e-14)  # rounding
    np.testing.assert_allclose(summed.M_mean, M.mean(axis=0), atol=1e-14)  # rounding
    np.testing.assert_allclose(summed.M_variance, 30 * M.var(axis=0, ddof=1), atol=1e-12)  # rounding, times N
    covariance = 30 * np.cov(q[:, -1].reshape(5, 4).T).reshape(2, 2, 2, 2)  # feature, channel, feature_, channel_
    found = summed.q_covariance.isel(time=-1).transpose("feature", "channel", "feature_", "channel_")
    np.testing.assert_allclose(found, covariance, atol=1e-12)  # rounding, times N
    np.testing.assert_allclose(summed.M_quantile.sel(quantile=0.5), np.median(M, axis=0), atol=1e-14)  # rounding
    assert summed.r_variance.dims == ("time", "channel")


@pytest.mark.parametrize("method", METHODS)
def test_numbers_do_not_depend_on_threads_or_interruptions(method, tmp_path, monkeypatch):
    noise = "[augmentation]\nvariance = [0.2, 0.3]\n[time]"
    problem = small(("[time]", noise), particles=f'method = "{method}"')
    whole = simulate_sgd(problem, workers=1).drop_attrs()
    assert simulate_sgd(problem, workers=3).drop_attrs().identical(whole)
    in_short_calls(monkeypatch)
    with monkeypatch.context() as patched:
        Interrupting(patched, CHANNEL_STEPPERS[method], calls=4)
        part = simulate_sgd(problem, workers=1, record=Checkpoint(tmp_path / "run"))
    assert part.status == "interrupted"
    rest = simulate_sgd(problem, workers=2, record=Checkpoint(tmp_path / "run"))
    assert rest.drop_attrs().identical(whole)


@pytest.mark.parametrize("method", METHODS)
def test_predicted_memory_is_close_and_not_below(method):
    table = f'[particles]\nmethod = "{method}"\ndimension = 20000\nreplicas = 2\n[time]\nstop = 2e-4\noutputs = 2'
    problem = standard(("[time]\nstop = 4.0\noutputs = 2", table))
    predicted = predicted_memory(simulation_of(problem), 1, True)
    simulate_sgd(small(particles=f'method = "{method}"'))  # compiles
    peak = peak_of(lambda: simulate_sgd(problem, workers=1))
    assert predicted > 0.95 * (peak - 2**20)  # 1 MiB for what is not counted: indices, problem, Dataset
    assert predicted < 2 * peak + 2**20  # the peaks of start and of steps need not coincide


@pytest.mark.parametrize(
    ("method", "batch_size", "dimension", "key"),
    [
        ("chain", 10**9, 400, "model.batch_size"),
        ("projected", 10**9, 400, "model.batch_size"),
        ("projected", 4, 10**11, "particles.dimension"),
    ],
)
def test_what_does_not_fit_names_the_key_that_takes_the_memory(method, batch_size, dimension, key):
    asked = {"model.batch_size": batch_size, "particles.dimension": dimension, "particles.method": method}
    problem = meanfield.with_values(small(), asked)
    with pytest.raises(InputError, match=f"GiB are free; lower {key}"):
        simulate_sgd(problem, workers=1)
    fits = meanfield.with_value(problem, key, 4 if key == "model.batch_size" else 400)
    assert predicted_memory(simulation_of(fits), 1, True) < 2**25


def test_the_cheapest_step_that_gives_what_is_asked_for():
    assert simulation_of(small()).label == "chain"
    assert simulation_of(small(particles="snapshots = [1.0]")).label == "projected"
    assert simulation_of(small(("[time]", '[prior]\nname = "l1"\nstrength = 1.0\n[time]'))).label == "projected"


@pytest.mark.parametrize(
    ("particles", "words"),
    [
        ("escape_overlap = 0.5", "escape_overlap = 0.5 with model.channels = 2: .* single channel; remove it"),
        ('method = "chain"\nsnapshots = [1.0]', "follows q alone and has no weights; set it to 'projected'"),
    ],
)
def test_what_cannot_be_given_is_refused(particles, words):
    with pytest.raises(InputError, match=words):
        meanfield.solve(small(particles=particles), "particles")


@pytest.mark.parametrize("method", METHODS)
def test_a_blow_up_is_reported_with_what_was_reached(method, monkeypatch):
    monkeypatch.setattr("meanfield.ingredients.priors.PriorSettings.check_pull", lambda *_: None)
    strong = ("[time]", '[prior]\nname = "l2"\nstrength = 1e250\n[time]'), ("rate = 0.1", "rate = 1e6")
    run = simulate_sgd(small(*strong, particles=f'method = "{method}"'))
    assert run.status.startswith("failed: at t = 0: the weights of replica 0 are no longer finite; lower")
    assert np.isnan(run.q.values[:, 1:]).all()
    assert np.isfinite(run.q.values[:, 0]).all()


def test_who_learns_what():
    """By hand: three channels of two replicas; one pair coincides up to its sign, and one channel learns nothing."""
    q = np.array([[[0.9, -0.9, 0.7], [0.1, -0.1, 0.6]], [[0.8, 0.1, 0.3], [0.1, -0.9, 0.2]]])
    M = np.array([[[1, -1, 0.8], [-1, 1, -0.8], [0.8, -0.8, 1]], [[1, 0, 0.1], [0, 1, 0.1], [0.1, 0.1, 1]]])
    dims = ("replica", "time", "channel")
    run = xr.Dataset(
        {"q": (("replica", "time", "feature", "channel"), q[:, None]), "M": ((*dims, "channel_"), M[:, None])}
    )
    shares = {name: float(share) for name, share in arrangement(run).items()}
    assert shares == {"collapsed_share": 1 / 6, "tilted_share": 2 / 6, "distinct_share": 1 / 6}  # of six pairs
    turned = run.isel(channel=[2, 0, 1], channel_=[2, 0, 1]) * xr.DataArray([1.0, -1.0], dims="replica")
    assert {name: float(share) for name, share in arrangement(turned).items()} == shares
    with pytest.raises(InputError, match=r"set model.channels to 2 or more, and particles.record to 'replicas'"):
        arrangement(simulate_sgd(small(particles='record = "statistics"')))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strength", "likely", "least"), [("0.0", "collapsed_share", 10 / 24), ("0.03", "distinct_share", 1.0)]
)
def test_random_starts_collapse_without_a_penalty_and_part_with_one(strength, likely, least):
    """Of another program 56 of 79 pairs collapsed without a penalty, and 74 of 74 were distinct with one.

    Of 24 replicas at least 10 then collapse but for a false alarm of 2e-3, and all are distinct.
    """
    features = (
        ("second_moment = 1.1, fourth_moment = 6.05", "second_moment = 2.0, fourth_moment = 20.0"),
        ("second_moment = 1.0, fourth_moment = 5.0", "second_moment = 1.7, fourth_moment = 14.45"),
    )
    training = (
        ('"none"', '"population"'),
        ("learning_rate = 0.01", "learning_rate = 0.004"),
        ("batch_size = 3", "batch_size = 5"),
        ("strength = 0.05", f"strength = {strength}"),
    )
    table = ("[time]\nstop = 4.0", "[particles]\ndimension = 300\nreplicas = 24\nseed = 6\n[time]\nstop = 400.0")
    shares = arrangement(simulate_sgd(standard(*RANDOM, *features, *training, table)))
    assert float(shares[likely]) >= least


STANDARD_STATE = {
    "square": ((), (0.52227, 0.26882, 0.16453, 0.39838, 0.14457)),
    "population, noise": (
        (
            ('"none"', '"population"'),
            ("batch_size = 3", "batch_size = 2"),
            ("strength = 0.05", "strength = 0.1\n[augmentation]\nvariance = [0.3, 0.2]\ncorrelation = -0.40824829"),
        ),
        (0.45697, 0.22174, 0.14141, 0.36156, 0.13649),
    ),
    "absolute": (
        (
            ('"quadratic"', '"tanh"'),
            ("learning_rate = 0.01", "learning_rate = 0.3"),
            ("batch_size = 3", "batch_size = 1"),
            ("strength = 0.05", 'strength = 0.5\npenalty = "absolute"'),
        ),
        (0.47050, 0.27755, 0.18554, 0.37917, 0.19118),
    ),
    "absolute, batch": (
        (
            ('"quadratic"', '"relu"'),
            ('"none"', '"batch"'),
            ("learning_rate = 0.01", "learning_rate = 0.2"),
            ("batch_size = 3", "batch_size = 10"),
            ("strength = 0.05", 'strength = 0.7\npenalty = "absolute"'),
        ),
        (0.49528, 0.24697, 0.15736, 0.38938, 0.05957),
    ),
}
"""Problems that start in the standard state, and q11, q12, q21, q22, M12 at t = 4 by the limit's ODEs.

They are right to 1e-5, the last to the standard errors of its quasi-Monte Carlo averages, `QUADRATURE_ERROR`.
"""
QUADRATURE_ERROR = {"absolute, batch": (0.00026, 0.00063, 0.00030, 0.00039, 0.00014)}


@pytest.mark.parametrize(
    ("case", "replicas"),
    [("square", 32), *(pytest.param(case, 48, marks=pytest.mark.slow) for case in STANDARD_STATE)],
)
def test_the_chain_agrees_with_the_limit(case, replicas):
    """The mean of all replicas within 3.5 standard errors.

    With 31 degrees of freedom Student's t exceeds 3.5 with probability 1.4e-3, so that five looks raise a false alarm
    with probability below 1e-2; all four slow cases with 47 below 2e-2.
    """
    changes, limit = STANDARD_STATE[case]
    table = ("[time]", f"[particles]\nmethod = 'chain'\ndimension = 5000\nreplicas = {replicas}\nseed = 4\n[time]")
    run = simulate_sgd(standard(*changes, table)).isel(time=-1)
    found = np.column_stack([run.q.values.reshape(replicas, 4), run.M.values[:, 0, 1]])
    error = np.hypot(found.std(axis=0, ddof=1) / np.sqrt(replicas), QUADRATURE_ERROR.get(case, 0.0))
    assert np.abs((found.mean(axis=0) - limit) / error).max() < STANDARD_ERRORS  # false-alarm rate of the docstring
