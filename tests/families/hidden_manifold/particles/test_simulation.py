"""Results of SGD: weights along eigenvectors, statistics of replicas, key numbers."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.hidden_manifold.numbers import of_an_ensemble, of_particles
from meanfield.families.hidden_manifold.particles.simulation import simulate_sgd
from meanfield.families.hidden_manifold.particles.steppers import Plain
from meanfield.numerics.compiled.matrix_products import unpack
from tests.families.hidden_manifold.particles.problems import LINEAR, TWO_BLOCKS, make_problem

CHAIN = (LINEAR, TWO_BLOCKS, 'particles.method = "chain"')


@pytest.mark.parametrize("lines", [(), (TWO_BLOCKS,)], ids=["independent entries", "two eigenvalues"])
def test_weights_are_kept_along_eigenvectors(lines):
    problem = make_problem(*lines, "particles.dimension = 60")
    plain = Plain(problem, range(1))
    plain.advance(0, 60)
    found = {name: array[0] for name, array in plain.snapshot.items()}
    S, teacher, rho = found["S"], found["teacher_components"], found["rho_of_coordinate"]
    F = np.sqrt(30) * unpack(plain._inputs.panels, 60)
    seen = plain._W @ F.T / np.sqrt(60)
    gram = F @ F.T / 60
    for power in range(4):  # products in which other axes would have other eigenvalues
        expected = np.linalg.matrix_power(gram, power)
        assert (S * rho**power) @ S.T == pytest.approx(seen @ expected @ seen.T, rel=1e-9)  # rounding
        along = seen @ expected @ plain._teacher
        assert (S * rho**power) @ teacher == pytest.approx(along, rel=1e-9, abs=1e-9)  # rounding, of sums that cancel
    result = simulate_sgd(problem)
    assert result.sizes["snapshot_time"] == 2
    assert result["S"].isel(snapshot_time=-1, replica=0).values == pytest.approx(S, abs=1e-9)  # rounding


def test_statistics_are_those_of_the_replicas():
    settings = "particles = { replicas = 40, dimension = 200, record = 'statistics' }"
    statistics = simulate_sgd(make_problem(*CHAIN, settings))
    replicas = simulate_sgd(make_problem(*CHAIN, settings.replace("statistics", "replicas")))
    for name in ("Q", "R", "v", "generalisation_error"):
        values = replicas[name].values.reshape(40, 2, -1)
        mean = statistics[f"{name}_mean"].values.reshape(2, -1)
        assert mean == pytest.approx(values.mean(axis=0), rel=1e-12)  # rounding of sums of 40
        spread = statistics[f"{name}_covariance" if name != "generalisation_error" else f"{name}_variance"].values
        count = values.shape[2]
        expected = 200 * np.cov(values[:, 1].T).reshape(count, count)
        found = spread.reshape(2, count, count)[1]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)  # rounding of means that are taken away
    ours, theirs = dict(of_an_ensemble(statistics)), dict(of_particles(replicas))
    assert ours == theirs
    assert len(ours) == 2 + 3 + 4  # replicas and error, Q, R


def test_the_chain_has_no_weights():
    with pytest.raises(InputError, match="follows overlaps alone and has no weights; set it to 'plain'"):
        simulate_sgd(make_problem(*CHAIN, "particles.snapshots = [1.0]"))
    assert "S" in simulate_sgd(make_problem(*CHAIN[:2], "particles.snapshots = [1.0]", "particles.replicas = 1"))


def test_a_blow_up_is_a_status_with_its_remedy():
    lines = ('student.activation = "relu"', 'teacher.activation = "relu"', "training.learning_rate = 20.0")
    result = meanfield.solve(make_problem(*lines, "time.stop = 20.0"), "particles")
    assert result.attrs["status"].startswith("failed")
    assert "lower training.learning_rate" in result.attrs["status"]
    assert np.isnan(result["Q"].values[:, -1]).any()
    assert np.all(np.isfinite(result["Q"].values[:, 0]))
