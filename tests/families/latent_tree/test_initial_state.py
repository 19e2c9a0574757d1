"""Starts from weights of results and of arrays: what continues a run equals the unbroken one."""

import numpy as np
import pytest

import meanfield
from meanfield import InputError
from meanfield.problems.known_families import find_family

EXAMPLE = meanfield.load_problem(find_family("latent_tree").example_path)
WHOLE = meanfield.with_values(EXAMPLE, {"time.stop": 2.0, "particles.replicas": 3})
REST = meanfield.with_values(WHOLE, {"time.stop": 1.0, "time.outputs": 3})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Folder with a flow, SGD, statistics of it, and arrays."""
    folder = tmp_path_factory.mktemp("starts")
    meanfield.save(meanfield.solve(WHOLE, "population"), folder / "flow.nc")
    meanfield.save(meanfield.solve(WHOLE, "particles"), folder / "runs.nc")
    meanfield.save(meanfield.solve(WHOLE, "operator"), folder / "operator.nc")
    statistics = meanfield.with_value(WHOLE, "particles.record", "statistics")
    meanfield.save(meanfield.solve(statistics, "particles"), folder / "statistics.nc")
    np.savez(folder / "mine.npz", weights=EXAMPLE.initial_weights.vector)
    np.savez(folder / "short.npz", weights=EXAMPLE.initial_weights.vector[:-1])
    return folder


def started(folder, name, **values):
    return meanfield.with_values(REST, {"initial.from": str(folder / name)} | values)


def test_the_flow_goes_on(files):
    whole = meanfield.load(files / "flow.nc")
    rest = meanfield.solve(started(files, "flow.nc", **{"initial.time": 1.0}), "population")
    for name in ("weights", "loss", "selectivity"):
        # ten times the tolerance of a step, whose lengths are others
        np.testing.assert_allclose(rest[name], whole[name][2:], rtol=0, atol=1e-8)


def test_runs_go_on_with_their_own_weights(files):
    whole = meanfield.load(files / "runs.nc")
    own = {"initial.time": 1.0, "particles.common_start": False}
    rest = meanfield.solve(started(files, "runs.nc", **own), "particles")
    assert np.array_equal(rest["weights"][:, 0], whole["weights"][:, 2])
    assert np.array_equal(rest["loss"][:, 0], whole["loss"][:, 2])
    flow = meanfield.solve(started(files, "runs.nc", **own), "population")
    assert np.array_equal(flow["weights"][0], whole["weights"][0, 2])


def test_arrays_are_the_start_that_is_drawn(files):
    for method in ("population", "particles", "operator"):
        found, known = (meanfield.solve(problem, method) for problem in (started(files, "mine.npz"), REST))
        if method == "particles":  # which draws numbers of its own from a file
            found, known = (each.isel(time=0).drop_vars("score") for each in (found, known))
        for name in set(found.data_vars) & set(known.data_vars):
            assert found[name].equals(known[name]), name


def test_explanations_and_comparisons_know_the_start(files):
    problem = started(files, "mine.npz")
    assert "which start from mine.npz" in " ".join(str(meanfield.explain(problem)).split())
    flow, runs = (meanfield.solve(problem, method) for method in ("population", "particles"))
    assert "other weights" not in str(meanfield.compare(flow, runs)["reason"].values[0])
    other = meanfield.solve(started(files, "flow.nc", **{"initial.time": 0.0}), "population")
    with pytest.raises(InputError, match=r"initial\.from"):
        meanfield.compare(other, runs)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("operator.nc", {}, "is a result of the kind 'operator', without a time; name a gradient flow"),
        ("statistics.nc", {}, "is a result of the kind 'ensemble' without 'weights'; name a gradient flow, or SGD"),
        ("flow.nc", {"initial.time": 0.3}, "initial.time = 0.3 is none of its output times, 0, 0.5, 1, 1.5, 2; name"),
        ("short.npz", {}, "has networks of 11 weights, and the problem one of 12; give both the same inputs"),
        ("flow.nc", {"network.nodes_per_latent": 3}, "has networks of 12 weights, and the problem one of 18"),
        ("runs.nc", {}, r"particles.common_start = true: initial.from has 3 runs, each the start of one; set it to"),
        (
            "runs.nc",
            {"particles.common_start": False, "particles.replicas": 4},
            "particles.replicas = 4: initial.from has 3 runs, each the start of one; lower replicas to 3",
        ),
        ("flow.nc", {"network.initial.fixed_lengths": True}, "weights of nodes have lengths that deviate from 1"),
        ("nothing.nc", {}, "no such file"),
    ],
)
def test_what_cannot_be_a_start_is_refused(name, values, words, files):
    with pytest.raises(InputError, match=words):
        started(files, name, **values)


def test_a_start_is_said_once(files):
    weights = {"law": "explicit", "weights": [[[[1.0, 0.0]] * 2] * 2, [[[1.0] * 4] * 2]]}
    with pytest.raises(InputError, match=r"network.initial.weights: the start is that of initial.from already; remove"):
        started(files, "flow.nc", **{"network.initial": weights})
    with pytest.raises(InputError, match="weights of a network are a start of finitely many nodes"):
        meanfield.solve(started(files, "flow.nc"), "density")
