"""SGD of update rules as a method of its family: observables, statistics, snapshots, and what is refused."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from tests.families.update_rule.particles.problems import FULL, SINGLE, made

PERCEPTRON = {"rule": "perceptron", "rule_parameters": {"rate": 0.7}}


@pytest.mark.parametrize("method", ["plain", "chain"])
def test_observables_are_those_of_the_overlaps_of_each_replica(method):
    run = meanfield.simulate_sgd(made(SINGLE, model=PERCEPTRON, particles={"method": method}))
    overlap = run["R"].values[..., 0, 0] / np.sqrt(run["Q"].values[..., 0, 0])
    error = np.arccos(overlap) / np.pi  # probability that two signs differ, whose correlation is the overlap
    np.testing.assert_allclose(run["observables"].values[..., 0], error, rtol=1e-7)  # of the quadrature


def test_replicas_and_statistics_are_of_the_same_runs_whatever_the_workers():
    given = {"particles": {"replicas": 20, "method": "chain"}}
    each = meanfield.simulate_sgd(made(FULL, **given), workers=2)
    given["particles"]["record"] = "statistics"
    statistics = meanfield.simulate_sgd(made(FULL, **given), workers=1)
    for name in ("R", "Q", "v"):
        np.testing.assert_allclose(statistics[f"{name}_mean"], each[name].mean("replica"), rtol=1e-13)  # rounding
    assert each["side_name"].values.tolist() == ["gain"]
    variance = 33 * each["v"].values[:, :, 0].var(axis=0, ddof=1)
    np.testing.assert_allclose(statistics["v_covariance"].values[:, 0, 0], variance, rtol=1e-12, atol=1e-25)


def test_snapshots_have_the_weights_of_the_overlaps():
    run = meanfield.simulate_sgd(made(FULL, particles={"method": "auto", "snapshots": [0.5, 1.0]}))
    W, U = run["weights"].values, run["U"].values
    N = W.shape[2]
    np.testing.assert_allclose(np.einsum("rtik,ril->rtkl", W, U) / N, run["R"].values[:, 1:], atol=1e-13)  # rounding
    np.testing.assert_allclose(np.einsum("rtik,rtil->rtkl", W, W) / N, run["Q"].values[:, 1:], atol=1e-13)


def test_a_blow_up_is_a_failure_with_a_remedy():
    problem = made(SINGLE, model={"rule": "oja", "rule_parameters": {"rate": 1e6}}, time={"stop": 4.0})
    run = meanfield.simulate_sgd(problem)
    assert "no longer finite; lower the rates among model.rule_parameters" in run.status
    assert np.isnan(run["Q"].values[:, -1]).all()


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"particles": {"method": "chain", "snapshots": [1.0]}}, r"has no weights; set it to 'plain', or remove"),
        ({"prior": {"name": "l1", "strength": 1000.0}}, r"past 0 .* raise particles.dimension .* prior.strength$"),
    ],
)
def test_what_cannot_be_simulated_is_refused(tables, said):
    with pytest.raises(InputError, match=said):
        meanfield.simulate_sgd(made(SINGLE, **tables))
