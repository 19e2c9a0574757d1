"""Which method is taken, what it gives, and that numbers depend on the problem alone."""

import numpy as np
import pytest

import meanfield
from meanfield.ensembles import ensemble
from meanfield.ensembles.simulation import blocks_of
from meanfield.errors import InputError
from meanfield.families.contrastive.sgd.start import winners
from meanfield.results.result import Result
from meanfield.results.schema import validate
from tests.example_problems import THREE_POINT, feature, features, make_problem

SHORT = ("time = { stop = 0.5, outputs = 3 }", "model.learning_rate = 0.5", "particles.dimension = 40")
L1 = 'prior = { name = "l1", strength = 2.0 }'
TWO = features(feature(0.5), feature(0.3, THREE_POINT, "rademacher"))


def simulate(*lines, workers=None):
    return meanfield.simulate_sgd(make_problem(*SHORT, *lines), workers)


@pytest.mark.parametrize(
    ("lines", "method", "weights"),
    [
        (("particles.method = 'auto'",), "chain", False),
        (("particles.method = 'auto'", 'prior = { name = "l2" }'), "chain", False),
        (("particles.method = 'auto'", "particles.snapshots = []"), "chain", False),
        (("particles.method = 'auto'", "particles.snapshots = [0.5]"), "projected", True),
        (("particles.method = 'auto'", L1), "projected", True),
        (("particles.method = 'auto'", L1, "particles.snapshots = []"), "projected", False),
        (("particles.method = 'auto'", L1, "particles.record = 'statistics'"), "projected", False),
        (("particles.method = 'chain'",), "chain", False),
        (("particles.method = 'projected'",), "projected", True),
        (("particles.method = 'plain'",), "plain", True),
        (("particles.method = 'plain'", "particles.snapshots = []"), "plain", False),
    ],
)
def test_the_cheapest_method_that_gives_what_is_asked_for(lines, method, weights):
    run = simulate(*lines)
    assert run.status == "complete"
    assert f'"steps": "{method}"' in run.provenance
    assert ("weights" in run) == ("U" in run) == ("snapshot_time" in run) == weights


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            (L1, "particles.method = 'chain'"),
            r"particles.method = 'chain' with prior.name = 'l1'.* to 'projected'",
        ),
        (
            ("particles.method = 'chain'", "particles.snapshots = [0.5]"),
            r"particles.snapshots = \[0.5\]: .*'chain' follows q alone .*; set it to 'projected', or remove",
        ),
    ],
)
def test_what_a_method_cannot_give_is_refused(lines, message):
    with pytest.raises(InputError, match=message):
        simulate(*lines)


@pytest.mark.parametrize("prior", ["l1", "l2", "quartic"])
def test_a_prior_that_throws_weights_past_zero_is_refused(prior):
    """With tau = 0.5, N = 40 a step moves a weight of size 1 by strength/80."""
    lines = "particles.snapshots = []", "particles.replicas = 1"
    assert simulate(f'prior = {{ name = "{prior}", strength = 79.9 }}', *lines).status == "complete"
    with pytest.raises(
        InputError, match=r"strength = 160 with .* = 40: .* of size 1 by 2, .* above 80, or lower prior"
    ):
        simulate(f'prior = {{ name = "{prior}", strength = 160.0 }}', *lines)


@pytest.mark.parametrize("method", ["plain", "projected", "chain"])
def test_numbers_do_not_depend_on_workers_or_on_other_replicas(method):
    lines = (
        f"particles.method = '{method}'",
        TWO,
        "augmentation.variance = [0.3, 0.1]",
        "particles.escape_overlap = 0.6",
    )
    alone = simulate(*lines, "particles.replicas = 21", workers=1)
    for workers in (2, 5):
        assert simulate(*lines, "particles.replicas = 21", workers=workers).drop_attrs().equals(alone.drop_attrs())
    few = simulate(*lines, "particles.replicas = 4")
    for name in few.data_vars:
        assert np.array_equal(few[name], alone[name][:4], equal_nan=True)
    assert np.ptp(alone.q.values[:, -1, 0]) > 0  # replicas differ
    other = simulate(*lines, "particles.seed = 1")
    assert np.all(other.q.values[:, -1] != alone.q.values[:2, -1])


@pytest.mark.parametrize("method", ["plain", "projected", "chain"])
def test_more_outputs_show_the_same_path_more_often(method):
    """Also where t N is no whole number, and for the law whose draws have two parts."""
    mixture = '{ law = "gaussian_mixture", means = [-1.0, 1.0], variances = [0.1, 0.5], probabilities = [0.4, 0.6] }'
    lines = (f"particles.method = '{method}'", features(feature(0.4, mixture)), "particles.dimension = 21")
    coarse, fine = (simulate(*lines, "time.stop = 0.6", f"time.outputs = {n}") for n in (2, 7))
    assert np.array_equal(coarse.q[:, -1], fine.q[:, -1])


@pytest.mark.parametrize("method", ["plain", "projected"])
def test_single_precision_rounds_what_is_kept_and_nothing_else(method):
    double, single = (
        simulate(f"particles.method = '{method}'", f"particles.snapshot_precision = '{p}'")
        for p in ("double", "single")
    )
    assert single.weights.dtype == single.U.dtype == np.float32
    assert np.array_equal(single.q, double.q)
    assert np.array_equal(single.weights, double.weights.astype(np.float32))


@pytest.mark.parametrize("method", ["plain", "projected", "chain"])
def test_escape_is_the_first_step_above_the_overlap(method):
    """Seen at every step: outputs at each of 20 steps."""
    lines = ("time = { stop = 0.5, outputs = 21 }", "particles.replicas = 30", "particles.escape_overlap = 0.6", TWO)
    run = simulate(f"particles.method = '{method}'", "particles.snapshots = []", *lines)
    above = np.linalg.norm(run.q, axis=2) >= 0.6
    first = np.where(above.any(axis=1), run.time.values[above.argmax(axis=1)], np.nan)
    assert run.escape_time.values == pytest.approx(first, abs=1e-12, nan_ok=True)  # k/N against linspace: rounding
    assert np.ptp(first[np.isfinite(first)]) > 0


def test_a_start_above_the_overlap_has_escaped_at_once():
    for method in ("plain", "projected", "chain"):
        run = simulate(f"particles.method = '{method}'", "particles.snapshots = []", "particles.escape_overlap = 0.4")
        assert run.escape_time.values.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("method", ["plain", "projected", "chain"])
def test_the_winner_has_the_largest_overlap_at_the_end(method):
    lines = ("time.stop = 1.5", "particles.replicas = 30", "particles.escape_overlap = 0.75")
    run = simulate(f"particles.method = '{method}'", "particles.snapshots = []", features(*[feature(0.4)] * 2), *lines)
    largest = np.abs(run.q[:, -1]).argmax("feature")
    assert np.array_equal(run.winner, np.where(np.isnan(run.escape_time), -1, largest))
    assert set(run.winner.values) == {-1, 0, 1}


def test_results_from_before_winners_were_kept_are_valid():
    run = simulate("particles.method = 'chain'", "particles.escape_overlap = 0.4")
    validate(Result.of(run.drop_vars("winner")))


def test_a_replica_that_blows_up_has_no_winner():
    """Whether it had escaped before or not; the largest |q_k| decides, of whichever sign."""
    q = np.array([[0.1, -0.8], [np.nan, np.nan], [0.3, 0.1], [0.9, 0.0]])
    assert winners(q, np.array([5, 5, -1, 0])).tolist() == [1, -1, -1, 0]


@pytest.mark.parametrize("method", ["projected", "chain"])
def test_weights_stay_on_the_sphere(method):
    run = simulate(f"particles.method = '{method}'", TWO, "model.learning_rate = 2.0", "time.stop = 50.0")
    if method == "projected":
        assert (run.weights.values**2).mean(axis=2) == pytest.approx(1, abs=1e-12)  # projected: rounding
        q = np.einsum("rni,rsn->rsi", run.U, run.weights) / 40
        assert run.q.values[:, [0, 1, 2]] == pytest.approx(q, abs=1e-13)  # every output is a snapshot: rounding
        products = np.einsum("rni,rnj->rij", run.U, run.U) / 40
        assert products == pytest.approx(np.stack([np.eye(2)] * 2), abs=1e-12)  # orthogonalised: rounding
    assert (np.linalg.norm(run.q, axis=2) <= 1).all()


def test_prior_work_of_linear_priors_is_known():
    for method in ("plain", "projected", "chain"):
        run = simulate(f"particles.method = '{method}'", 'prior = { name = "l2", strength = 3.0 }')
        assert run.r.values == pytest.approx(3.0, abs=1e-12)  # 3 E[w^2] on the sphere: rounding


@pytest.mark.parametrize("method", ["plain", "projected", "chain"])
def test_a_blow_up_says_when_and_what_to_change(method, monkeypatch):
    monkeypatch.setattr("meanfield.ingredients.priors.PriorSettings.check_pull", lambda *_: None)
    monkeypatch.setattr(ensemble, "FIRST_CALL", 3)  # the calls that would follow do not hide when it was
    lines = (f"particles.method = '{method}'", 'prior = { name = "l2", strength = 1e250 }', "particles.snapshots = []")
    run = simulate(*lines, "model.learning_rate = 1e6")
    assert run.status.startswith(
        "failed: at t = 0: the weights of replica 0 are no longer finite; lower model.learning"
    )
    assert np.isfinite(run.q.values[:, 0]).all()
    assert np.isnan(run.q.values[:, 1:]).all()


def test_blocks_cover_all_replicas_once():
    for together in (1, 256):
        for replicas in (1, 2, 15, 16, 17, 255, 256, 5000):
            blocks = blocks_of(replicas, together)
            assert [replica for block in blocks for replica in block] == list(range(replicas))
            assert len(blocks) >= min(replicas, 9)  # enough for several workers


def test_dimensions_beyond_all_memory_run_as_a_chain():
    run = simulate("particles.dimension = 1000000000", "time.stop = 1e-5", "particles.method = 'auto'")
    assert run.status == "complete"
    assert run.q.values[:, 0] == pytest.approx(0.5, abs=1e-15)  # the start is exact: rounding
    assert np.ptp(run.q.values[:, -1]) > 0


@pytest.mark.parametrize("method", ["plain", "projected", "chain"])
def test_many_features_need_no_averages_of_the_limit(method):
    """Their joint law has 3^12 values, over which nobody sums here; nor do the moments exist that the limit needs."""
    heavy = feature(0.2, '{ law = "student_t", degrees_of_freedom = 2.5 }')
    tables = features(*[feature(0.2)] * 12, heavy)
    run = simulate(f"particles.method = '{method}'", tables, "model.learning_rate = 0.1", "particles.snapshots = []")
    assert run.status == "complete"
    assert run.q.shape == (2, 3, 13)
    with pytest.raises(InputError, match=r"degrees_of_freedom = 2\.5"):
        simulate(f"particles.method = '{method}'", features(heavy), 'model.centering = "population"')
