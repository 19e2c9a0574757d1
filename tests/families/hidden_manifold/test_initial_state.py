"""Starts from order parameters, from runs and from matrices: what continues a run equals the unbroken one."""

import numpy as np
import pytest

import meanfield
from meanfield import InputError
from tests.families.hidden_manifold.problems import problem
from tests.families.hidden_manifold.test_start_from_run import matrices

TIME = {"stop": 4.0, "outputs": 5}
ATOMS = {"spectrum": {"law": "atoms", "eigenvalues": [0.4, 1.6], "weights": [0.5, 0.5], "teacher": [0.8, 1.2]}}
MEANS = {"components": [{"weight": 0.3, "mean": [2.0, 0.0]}, {"weight": 0.7, "mean": [-6.0 / 7.0, 0.0]}]}
PARTICLES = {"method": "plain", "dimension": 200, "replicas": 2, "seed": 5, "snapshots": [0.0, 2.0]}
NO_STUDENT = dict.fromkeys(("student.on_teacher", "student.elsewhere"))


def rest_of(whole, path, time=2.0, **values):
    """The second half of a problem, from a file on."""
    start = {"initial": {"from": str(path)} | ({} if time is None else {"time": time})} | NO_STUDENT
    half = {"time.stop": 2.0, "time.outputs": 3, "particles.snapshots": None}
    return meanfield.with_values(whole, start | half | values)


@pytest.mark.parametrize("inputs", [{}, ATOMS, MEANS], ids=["Marchenko-Pastur", "atoms", "means"])
@pytest.mark.parametrize("method", ["order_parameters", "density"])
def test_order_parameters_go_on(inputs, method, tmp_path):
    whole = problem(inputs=inputs, time=TIME, training={"output_learning_rate": 0.1})
    known = meanfield.solve(whole, "order_parameters")
    meanfield.save(known, tmp_path / "whole.nc")
    found = meanfield.solve(rest_of(whole, tmp_path / "whole.nc"), method)
    assert found.attrs["status"] == "complete"
    for name in ("Q", "R", "v", "generalisation_error"):
        gap = np.abs(found[name].values - known[name].values[2:])
        assert np.all(gap <= found[f"{name}_error"].values + known[f"{name}_error"].values[2:] + 1e-12), (
            name
        )  # rounding
        assert gap.max() <= 1e-9  # ten tolerances


@pytest.fixture(scope="module", params=[{}, {"nonlinearity": "linear", "aspect_ratio": 1.5}, ATOMS])
def run(request, tmp_path_factory):
    """Problem, and its runs in a file."""
    whole = problem(inputs=request.param, time=TIME, particles=PARTICLES)
    path = tmp_path_factory.mktemp("starts") / "runs.nc"
    result = meanfield.solve(whole, "particles")
    meanfield.save(result, path)
    return whole, path, result


def test_runs_go_on_with_their_own_weights(run):
    """What they are made of is that of the file, and steps are others than those before."""
    whole, path, known = run
    rest = meanfield.solve(rest_of(whole, path), "particles")
    for name in ("Q", "R", "Omega", "Sigma", "v"):
        np.testing.assert_allclose(rest[name][:, 0], known[name][:, 2], rtol=0, atol=1e-9)  # rounding of D products
    np.testing.assert_allclose(np.abs(rest["S"][:, 0]), np.abs(known["S"][:, 1]), rtol=0, atol=1e-6)  # of eigenvectors
    again = meanfield.solve(rest_of(whole, path, time=0.0), "particles")
    np.testing.assert_allclose(again["Q"][:, 0], known["Q"][:, 0], rtol=0, atol=1e-9)  # as above
    assert not np.isclose(again["Q"][:, 1], known["Q"][:, 1], rtol=0, atol=1e-9).any()


def test_order_parameters_start_from_the_mean_of_runs(run):
    whole, path, known = run
    ode = meanfield.solve(rest_of(whole, path), "order_parameters")
    for name in ("Q", "R", "Omega", "Sigma", "v"):
        mean = known[name].isel(time=2).mean("replica")
        np.testing.assert_allclose(ode[name][0], mean, rtol=0, atol=1e-9)  # rounding of D products


@pytest.mark.slow
def test_sgd_that_goes_on_agrees_with_its_order_parameters(tmp_path):
    """Sixteen runs of a nonlinear problem; a verdict is wrong once in 20 times by chance, and the seed is fixed."""
    particles = PARTICLES | {"dimension": 400, "replicas": 16, "snapshots": [2.0]}
    whole = problem(time=TIME, particles=particles, order_parameters={"tolerance": 1e-6})
    meanfield.save(meanfield.solve(whole, "particles"), tmp_path / "runs.nc")
    rest = rest_of(whole, tmp_path / "runs.nc")
    sgd, ode = (meanfield.solve(rest, method) for method in ("particles", "order_parameters"))
    assert meanfield.compare(ode, sgd).attrs["verdict"] == "AGREES"


def test_matrices_are_those_of_solve_from_weights(tmp_path):
    F, W, Wt = matrices()
    np.savez(tmp_path / "mine.npz", features=F, weights=W, teacher=Wt)
    T = (Wt @ Wt.T / 100).tolist()
    T[1][0] = T[0][1]
    whole = problem(inputs=ATOMS, time=TIME, particles=PARTICLES, teacher={"overlap": T})
    start = rest_of(whole, tmp_path / "mine.npz", time=None)
    found = meanfield.solve(start, "order_parameters")
    known = meanfield.hidden_manifold.solve_from_weights(
        problem(time={"stop": 2.0, "outputs": 3}, teacher={"overlap": T}), F, W, Wt
    )
    for name in ("Q", "R", "generalisation_error"):
        np.testing.assert_allclose(found[name], known[name], rtol=0, atol=1e-9)  # ten tolerances
    sgd = meanfield.solve(start, "particles")
    for name in ("Q", "R", "Omega", "v"):
        np.testing.assert_allclose(sgd[name][:, 0], found[name][[0, 0]], rtol=0, atol=1e-6)  # single precision of F


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"teacher.overlap": [[1.0, 0.5], [0.5, 1.0]]}, r"teacher.overlap: is \[\[1.0, 0.0\], \[0.0, 1.0\]\] of the"),
        ({"inputs.aspect_ratio": 0.7}, "has order parameters at other eigenvalues than those of inputs.spectrum at"),
        ({"initial.time": 0.3}, "initial.time = 0.3 is none of its output times, 0, 1, 2, 3, 4; name one of them"),
        ({"student.initial": "random"}, "student.initial: the start is that of initial.from already; remove one"),
        ({"initial": None}, "student.on_teacher: is missing; add it, or set student.initial to 'random'"),
        ({"initial": {"from": "wrong.npz"}}, r"has the shapes .*; give features \(D, N\), weights \(students, N\)"),
    ],
)
def test_what_cannot_be_a_start_is_refused(values, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = problem(time=TIME, order_parameters={"tolerance": 1e-4})
    meanfield.save(meanfield.solve(whole, "order_parameters"), "whole.nc")
    np.savez("wrong.npz", features=np.eye(3), weights=np.ones((2, 4)), teacher=np.ones((2, 3)))
    with pytest.raises(InputError, match=words):
        rest_of(whole, "whole.nc", **values)


@pytest.mark.parametrize("run", [{}], indirect=True)
def test_methods_refuse_what_a_file_does_not_hold(run, tmp_path):
    whole, path, _ = run
    rest, other = rest_of(whole, path), {"law": "atoms", "eigenvalues": [0.0, 2.0]}
    for method, words in (
        ("density", "weights of runs are no law of weights given eigenvalues; name order parameters"),
        ("fixed_points", "searches for fixed points take a start by keys"),
        ("escape", "escapes from the symmetric plateau take a start by keys"),
        ("assumptions", "comparisons with the conventional theory take a start by keys"),
    ):
        with pytest.raises(InputError, match=words):
            meanfield.solve(rest, method)
    with pytest.raises(InputError, match=r"particles.method = 'chain' with initial.from"):
        meanfield.solve(meanfield.with_value(rest, "particles.method", "chain"), "particles")
    with pytest.raises(InputError, match=r"its features and teacher are not those that inputs and teacher draw"):
        meanfield.solve(meanfield.with_value(rest, "inputs.spectrum", other), "particles")
    meanfield.save(meanfield.solve(whole, "order_parameters"), tmp_path / "ode.nc")
    with pytest.raises(InputError, match="holds order parameters and no weights; name runs of SGD with"):
        meanfield.solve(rest_of(whole, tmp_path / "ode.nc"), "particles")
    meanfield.save(meanfield.solve(rest, "particles"), tmp_path / "rest.nc")
    with pytest.raises(InputError, match="these runs had started from a file themselves"):
        meanfield.solve(rest_of(whole, tmp_path / "rest.nc"), "particles")
