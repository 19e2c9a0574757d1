"""Order parameters from the start of a run itself: from its weights, from its matrices, and against the run."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.problems.file import problem_from
from tests.families.hidden_manifold.problems import data, problem

N, D = 200, 100
SHORT = {"stop": 4.0, "outputs": 5}
PARTICLES = {"method": "plain", "dimension": N, "replicas": 1, "seed": 5, "snapshots": [0.0]}
INFORMED = problem(time=SHORT, particles=PARTICLES)


@pytest.fixture(scope="module")
def run():
    return meanfield.solve(INFORMED, "particles")


def matrices(seed=0, size=N):
    """Features with two eigenvalues that are 0.4 and 1.6, a teacher, and weights, all at random."""
    rng = np.random.default_rng(seed)
    half = size // 2
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for n in (half, size))
    rho = np.repeat([0.4, 1.6], half // 2)
    F = left * np.sqrt(size * rho) @ right[:half]
    return F, rng.standard_normal((2, size)), rng.standard_normal((2, half))


def test_a_run_starts_where_its_own_order_parameters_do(run):
    ode = meanfield.hidden_manifold.solve_from_run(INFORMED, run)
    for name in ("Q", "R", "Omega", "Sigma", "v"):
        first = run[name].isel(replica=0, time=0)
        np.testing.assert_allclose(ode[name].isel(time=0), first, rtol=0, atol=1e-9)  # rounding of D products
    assert ode.sizes["rho"] == D


def test_sgd_follows_its_own_start_more_closely_than_the_limit(run):
    """Random starts lie 1/sqrt(N) apart; what the noise of steps adds is less at a learning rate of 0.02."""
    random = {"output_weights": [1.0, 1.0], "initial": "random"}
    slow = problem_from(data(time=SHORT, particles=PARTICLES, training={"learning_rate": 0.02}) | {"student": random})
    sgd = meanfield.solve(slow, "particles")
    found = {
        "own": meanfield.hidden_manifold.solve_from_run(slow, sgd),
        "limit": meanfield.solve(slow, "order_parameters"),
    }
    away = {name: float(np.abs(sgd["Q"].isel(replica=0) - ode["Q"]).max()) for name, ode in found.items()}
    assert away["own"] < 0.2 * away["limit"]  # 0.013 to 0.09 over ten other seeds


def test_matrices_have_the_limit_of_their_spectrum():
    """Given the products of a start, the ODEs do not know which vectors have them: blocks are as good as nodes."""
    F, W, Wt = matrices()
    ode = meanfield.hidden_manifold.solve_from_weights(problem(time=SHORT), F, W, Wt)
    rho, axes = np.linalg.eigh(F @ F.T / N)
    S, teacher = W @ F.T @ axes / np.sqrt(N), Wt @ axes
    lower = rho < 1.0
    for at, block in ((0.4, lower), (1.6, ~lower)):
        here = np.isclose(ode["rho"], at)
        r = ode["r"].isel(time=0).values[here].mean(axis=0)
        np.testing.assert_allclose(r, S[:, block] @ teacher[:, block].T / block.sum(), rtol=0, atol=1e-12)  # rounding
    np.testing.assert_allclose(ode["T"], Wt @ Wt.T / D, rtol=0, atol=1e-12)  # rounding
    np.testing.assert_allclose(ode["Omega"].isel(time=0), W @ W.T / N, rtol=0, atol=1e-12)  # rounding
    assert float(np.abs(ode["Q_error"]).max()) <= 1e-10  # the tolerance of the problem


def test_a_rotation_of_latents_and_inputs_changes_nothing():
    F, W, Wt = matrices()
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for n in (D, N))
    first = meanfield.hidden_manifold.solve_from_weights(problem(time=SHORT), F, W, Wt)
    second = meanfield.hidden_manifold.solve_from_weights(problem(time=SHORT), left @ F @ right, W @ right, Wt @ left.T)
    for name in ("Q", "R", "generalisation_error"):
        np.testing.assert_allclose(first[name], second[name], rtol=0, atol=1e-9)  # ten times the tolerance


def test_means_along_the_teacher_are_columns():
    """With the start of the limit at each eigenvalue the solution is that of the limit."""
    inputs = {
        "nonlinearity": "sign",
        "aspect_ratio": 0.5,
        "spectrum": {"law": "atoms", "eigenvalues": [1.0], "weights": [1.0]},
        "components": [{"weight": 0.3, "mean": [2.0, 0.0]}, {"weight": 0.7, "mean": [-6.0 / 7.0, 0.0]}],
    }
    rng = np.random.default_rng(2)
    F = np.sqrt(N) * np.linalg.qr(rng.standard_normal((N, D)))[0].T
    Wt = np.sqrt(D) * np.linalg.qr(rng.standard_normal((D, 4)))[0].T
    S = np.array([[0.3, 0.0], [0.05, 0.25]]) @ Wt[:2] + 0.7 * Wt[2:]
    W = S @ F / np.sqrt(N)
    rest = np.linalg.qr(np.hstack([F.T, rng.standard_normal((N, 2))]))[0][:, -2:].T
    W += np.sqrt(0.49 * 0.5 * N) * rest  # so that W W^T/N is delta X X^T + G
    ode = meanfield.hidden_manifold.solve_from_weights(problem(inputs=inputs, time=SHORT), F, W, Wt[:2])
    limit = meanfield.solve(problem(inputs=inputs, time=SHORT), "order_parameters")
    for name in ("Q", "R", "generalisation_error"):
        np.testing.assert_allclose(ode[name], limit[name], rtol=0, atol=1e-8)  # rounding of D products, 100 tolerances


WRONG = {
    "weights: has the shape": lambda F, W, Wt: (F, W[:1], Wt),
    "teacher: has the shape": lambda F, W, Wt: (F, W, Wt[:, 1:]),
    "features: has the shape": lambda F, W, Wt: (F[0], W, Wt),
    "features: holds values that are not finite": lambda F, W, Wt: (F * np.nan, W, Wt),
    "divide F by its root": lambda F, W, Wt: (2.0 * F, W, Wt),
}


@pytest.mark.parametrize("words", WRONG)
def test_matrices_that_do_not_fit(words):
    with pytest.raises(InputError, match=words):
        meanfield.hidden_manifold.solve_from_weights(problem(time=SHORT), *WRONG[words](*matrices()))


def test_runs_and_problems_without_what_is_needed(run):
    with pytest.raises(InputError, match=r"replica = 3: the run has replicas 0 to 0"):
        meanfield.hidden_manifold.solve_from_run(INFORMED, run, 3)
    with pytest.raises(InputError, match=r"particles.snapshots = \[0.0\]"):
        meanfield.hidden_manifold.solve_from_run(INFORMED, run.drop_vars("S"))
    with pytest.raises(InputError, match="is of another problem"):
        meanfield.hidden_manifold.solve_from_run(problem(time=SHORT), run)
    inputs = {"nonlinearity": "sign", "aspect_ratio": 0.5, "components": [{"weight": 1.0, "mean_elsewhere": 1.0}]}
    with pytest.raises(InputError, match="mean_elsewhere = 1: the direction of a mean"):
        meanfield.hidden_manifold.solve_from_weights(problem(inputs=inputs, time=SHORT), *matrices())
