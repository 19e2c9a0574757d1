"""Starts of update rules from results and arrays: they go on as the unbroken run, or in its law."""

import numpy as np
import pytest

import meanfield
from meanfield import InputError
from meanfield.problems.problem_keys import with_values
from meanfield.results.initial_state import said_by_keys
from tests.families.update_rule.problems import OWN, feature, problem
from tests.families.update_rule.test_reference_numbers import CASES

PLAIN = {"dimension": 64, "replicas": 2, "seed": 5, "method": "plain"}
PETRELS = with_values(CASES["PETRELS"][0](), {"particles": PLAIN})
SINGLE = problem("hebb", 0.7, features=[feature(0.2)], time={"stop": 1.0, "outputs": 3}, particles=PLAIN)
SPECTRUM = problem(
    "regression", 0.4, numbers={"sigma": 0.2}, features=[feature(0.2)], time={"stop": 2.0, "outputs": 5},
    data={"spectrum": {"law": "power_law", "exponent": 1.0, "range": 5.0}, "normals": ["eps"]},
)  # fmt: skip
SPARSE = problem(
    "perceptron", 0.7, features=[feature(0.2)], time={"stop": 2.0, "outputs": 5}, density={"tolerance": 1e-4},
    prior={"name": "l1", "strength": 0.3},
)  # fmt: skip


def going_on(whole, path, time, **values):
    """Problem from a time on, whose start is a file."""
    stop = whole.time.stop - time
    outputs = round((whole.time.outputs - 1) * stop / whole.time.stop) + 1
    start = {"initial": {"from": str(path), "time": time}, "time.stop": stop, "time.outputs": outputs}
    return with_values(whole, said_by_keys(whole) | start | values)


@pytest.mark.parametrize(
    ("whole", "method"),
    [
        pytest.param(PETRELS, "order_parameters", id="side variable"),
        pytest.param(CASES["subspace, polar"][0](), "order_parameters", id="orthonormal", marks=pytest.mark.slow),
        pytest.param(SPECTRUM, "order_parameters", id="spectrum"),
        pytest.param(SPARSE, "density", id="density", marks=pytest.mark.slow),
    ],
)
def test_predictions_go_on_within_their_errors(whole, method, tmp_path):
    known = meanfield.solve(whole, method)
    meanfield.save(known, tmp_path / "known.nc")
    half, middle = whole.time.stop / 2, (len(known["time"]) - 1) // 2
    found = meanfield.solve(going_on(whole, tmp_path / "known.nc", half), method)
    for name in ("R", "Q", "v", "r"):
        if name in found:
            allowed = found[f"{name}_error"].values + known[f"{name}_error"].values[middle:]
            assert np.all(np.abs(found[name].values - known[name].values[middle:]) <= allowed), name
    moved = np.abs(known["R"].values[middle:] - known["R"].values[middle]).max()
    assert moved > 10.0 * (found["R_error"].max() + known["R_error"].max())


def test_sgd_begins_with_the_weights_and_side_variables_of_a_run(tmp_path):
    whole = PETRELS
    known = meanfield.simulate_sgd(whole)
    meanfield.save(known, tmp_path / "known.nc")
    found = meanfield.simulate_sgd(going_on(whole, tmp_path / "known.nc", 2.0))
    for name in ("weights", "U"):
        first = [
            each[name].isel(snapshot_time=k) if name == "weights" else each[name]
            for each, k in ((found, 0), (known, 1))
        ]
        assert np.array_equal(*first)
    assert np.array_equal(found["v"][:, 0], known["v"][:, 2])
    assert not np.array_equal(found["R"][:, -1], known["R"][:, -1])  # by numbers of its own


# Plain steps start with weights and side variables of a run in the test above.
@pytest.mark.parametrize("method", [pytest.param("plain", marks=pytest.mark.slow), "chain"])
def test_sgd_from_a_run_agrees_with_order_parameters_from_it(method, tmp_path):
    """One verdict at 5 % by a fixed seed, and one on a limit that begins elsewhere."""
    whole = with_values(SINGLE, {"particles.dimension": 400, "particles.replicas": 1})
    meanfield.save(meanfield.simulate_sgd(whole), tmp_path / "run.nc")
    after = going_on(whole, tmp_path / "run.nc", 0.5, **{"particles.replicas": 64, "particles.method": method})
    runs, limit = meanfield.simulate_sgd(after), meanfield.solve_order_parameters(after)
    assert meanfield.compare(limit, runs).attrs["verdict"] == "AGREES"
    assert meanfield.compare(limit.assign(R=limit["R"] + 0.05), runs).attrs["verdict"] == "DIFFERS"


@pytest.mark.slow
def test_sgd_from_a_density_agrees_with_the_density_that_goes_on(tmp_path):
    """One verdict at 5 % by a fixed seed, of overlaps and histograms."""
    meanfield.save(meanfield.solve_density(SPARSE), tmp_path / "density.nc")
    particles = {"dimension": 4000, "replicas": 8, "seed": 1, "snapshots": [1.0]}
    after = going_on(SPARSE, tmp_path / "density.nc", 1.0, particles=particles)
    report = meanfield.compare(meanfield.solve_density(after), meanfield.simulate_sgd(after))
    assert report.attrs["verdict"] == "AGREES"


def test_arrays_are_a_start(tmp_path):
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.standard_normal((64, 2)))
    U, w = 8.0 * q[:, :1], 8.0 * (0.6 * q[:, 0] + 0.8 * q[:, 1])
    np.savez(tmp_path / "mine.npz", weights=w, U=U)
    start = {"initial": {"from": str(tmp_path / "mine.npz")}}
    after = with_values(SINGLE, said_by_keys(SINGLE) | start)
    assert meanfield.solve_order_parameters(after)["R"].values[0].item() == pytest.approx(0.6, abs=1e-12)  # rounding
    assert np.array_equal(meanfield.simulate_sgd(after)["weights"][:, 0, :, 0], np.stack([w, w]))


def test_a_start_that_does_not_fit_says_what_to_do(tmp_path):
    whole = PETRELS
    meanfield.save(meanfield.solve_order_parameters(whole), tmp_path / "known.nc")
    with pytest.raises(InputError, match=r"^side\.gain\.start: the start is that of initial\.from already; remove"):
        with_values(
            whole, {"initial": {"from": str(tmp_path / "known.nc")}} | said_by_keys(whole) | {"side.gain.start": 1.0}
        )
    with pytest.raises(InputError, match=r"^side\.gain\.start: is missing; add it"):
        with_values(whole, {"side.gain.start": None})
    with pytest.raises(
        InputError, match=r"initial\.from: has 1 side variable\(s\), and the problem 0; make them equal"
    ):
        with_values(SINGLE, said_by_keys(SINGLE) | {"initial": {"from": str(tmp_path / "known.nc")}})


def test_results_that_went_on_go_on_with_other_observables(tmp_path):
    """What a result names is not opened again, neither its start nor its functions."""
    draw = {"gain": {"s": "hebb"}, "observables": {"more": OWN + "oja"}}
    first = with_values(SINGLE, {"model.rule": None, "draws": [draw]})
    meanfield.save(meanfield.solve_order_parameters(first), tmp_path / "first.nc")
    second = going_on(SINGLE, tmp_path / "first.nc", 0.5)
    meanfield.save(meanfield.solve_order_parameters(second), tmp_path / "second.nc")
    third = meanfield.solve_order_parameters(going_on(SINGLE, tmp_path / "second.nc", 0.5))
    known = meanfield.solve_order_parameters(meanfield.with_values(SINGLE, {"time.stop": 1.5, "time.outputs": 4}))
    off = np.abs(third["R"].values - known["R"].values[2:]).max()
    assert off <= float(third["R_error"].max() + known["R_error"].max())
