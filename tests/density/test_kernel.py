"""The kernel of one midpoint step: accuracy of its pieces, the scheme against dense linear algebra, vectorisation."""

import numba
import numpy as np
import pytest
from mpmath import mp, mpf

from meanfield.density.kernel import LANES, SMALL, bernoulli_pair, midpoint_step, pack, unpack
from meanfield.priors import PRIORS


@numba.njit
def both_bernoulli(z):
    return bernoulli_pair(z)


def exact_bernoulli(z: float) -> float:
    with mp.workdps(50):
        return float(mpf(z) / mp.expm1(mpf(z))) if z else 1.0


def advance(P: np.ndarray, a: np.ndarray, b: np.ndarray, k: float, steps: int = 1) -> np.ndarray:
    nodes, cells = P.shape
    packed = pack(P)
    blocks = len(packed)
    tilt = np.concatenate([b, np.repeat(b[-1:], blocks * LANES - nodes)])
    for _ in range(steps):
        after, scratch = np.empty_like(packed), np.empty(4 * (cells + 1) * LANES)
        midpoint_step(packed.reshape(-1), after.reshape(-1), scratch, a, tilt, k, cells, blocks)
        packed = after
    return unpack(packed, nodes)


def dense_midpoint(P: np.ndarray, a: np.ndarray, b: np.ndarray, k: float) -> np.ndarray:
    """The scheme of the module's docstring, built face by face: (1 - dt/2 A) P_mid = P, then 2 P_mid - P."""
    result = np.empty_like(P)
    for node, tilt in enumerate(b):
        half_A = np.zeros((P.shape[1], P.shape[1]))
        for i, z in enumerate(a + tilt):
            flux = k * np.array([exact_bernoulli(-z), -exact_bernoulli(z)])
            half_A[i, i : i + 2] -= flux
            half_A[i + 1, i : i + 2] += flux
        result[node] = 2 * np.linalg.solve(np.eye(P.shape[1]) - half_A, P[node]) - P[node]
    return result


MAGNITUDES = np.concatenate([np.geomspace(1e-300, 1e3, 400), np.linspace(0, 50, 1001), SMALL + np.linspace(-1, 1, 99)])


@pytest.mark.parametrize("sign", [-1, 1])
def test_bernoulli_functions_are_accurate_everywhere(sign):
    for z in sign * MAGNITUDES:
        forward, backward = both_bernoulli(z)
        for computed, exact in ((forward, exact_bernoulli(-z)), (backward, exact_bernoulli(z))):
            cut = 8e-20 * abs(z) if abs(z) > 44 else 0.0  # exp(-|z|) is not followed below exp(-44) = 8e-20
            assert computed == pytest.approx(exact, rel=1e-13, abs=cut)  # six squarings: 64 roundings of exp


def test_difference_of_the_bernoulli_functions_is_the_drift():
    for z in np.concatenate([-MAGNITUDES, MAGNITUDES]):
        forward, backward = both_bernoulli(z)
        assert forward - backward == pytest.approx(z, rel=1e-13, abs=1e-15)  # B(-z) - B(z) = z; B ~ 1 is rounded


@pytest.mark.parametrize("size", [1e-9, 0.3, 1.9, 2.1, 20.0, 300.0], ids=lambda size: f"z={size}")
@pytest.mark.parametrize("k", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("nodes", [1, LANES, LANES + 3])
def test_step_solves_the_scheme(size, k, nodes):
    rng = np.random.default_rng(1)
    cells = 24
    P = rng.random((nodes, cells))
    a, b = 0.5 * size * rng.uniform(-1, 1, cells - 1), 0.5 * size * rng.uniform(-1, 1, nodes)
    expected = dense_midpoint(P, a, b, k)
    rounding = 2e-15 * (1 + k * max(size, 1))  # machine precision times the norm of the system, 1 + 4 k C(z)
    assert advance(P, a, b, k) == pytest.approx(expected, rel=1e-13, abs=rounding)  # 1e-13: the Bernoulli functions


def test_faces_of_one_row_may_need_different_branches():
    """One node's tilt pushes a whole row of lanes into the branch with exponentials."""
    rng = np.random.default_rng(2)
    P = rng.random((LANES, 16))
    a, b = rng.uniform(-1, 1, 15), np.zeros(LANES)
    alone = advance(P, a, b, 0.7)
    b[-1] = 30.0
    assert advance(P, a, b, 0.7)[:-1] == pytest.approx(alone[:-1], rel=1e-13)  # both branches are exact to rounding


@pytest.mark.parametrize("nodes", [1, LANES - 1, LANES, LANES + 1, 3 * LANES])
def test_unpacking_inverts_packing(nodes):
    P = np.random.default_rng(3).random((nodes, 7))
    packed = pack(P)
    assert packed.shape == (-(-nodes // LANES), 7, LANES)
    assert np.array_equal(unpack(packed, nodes), P)


def test_lanes_that_fill_up_a_block_hold_copies_of_the_last_node():
    packed = pack(np.arange(6.0).reshape(2, 3))
    assert np.array_equal(packed[0, :, 1:], np.repeat([[3.0], [4.0], [5.0]], LANES - 1, axis=1))


def test_mass_is_conserved_and_the_density_stays_positive():
    rng = np.random.default_rng(4)
    P = rng.random((5, 64))
    after = advance(P, rng.uniform(-3, 3, 63), rng.uniform(-3, 3, 5), 0.02, steps=1000)
    assert after.sum(axis=1) == pytest.approx(P.sum(axis=1), rel=1e-12)  # 1000 steps, a few roundings each
    assert after.min() > 0  # k times the largest outflow, 2 B(-6), is below one: explicit half steps stay positive


@pytest.mark.parametrize("prior", ["l1", "quartic"])
def test_stationary_state_is_boltzmann_at_the_cell_centres(prior):
    """With frozen coefficients P ~ exp(-V/D) exactly, because z is a difference of the potential (numerics.md)."""
    w = (np.arange(200) - 99.5) * 0.05
    tilt = np.array([-0.7, 0.0, 0.4])
    V = PRIORS[prior].potential(w) + 0.3 * w**2
    boltzmann = np.exp(-(V - V.min()) + tilt[:, None] * w)
    boltzmann /= boltzmann.sum(axis=1, keepdims=True)
    largest = boltzmann.max()
    kept = advance(boltzmann, -np.diff(V), tilt * 0.05, 1e3)
    assert kept == pytest.approx(boltzmann, rel=0, abs=1e-13 * largest)  # fluxes cancel up to rounding times k = 1e3
    start = np.full_like(boltzmann, 1 / 200)
    reached = advance(start, -np.diff(V), tilt * 0.05, 2.0, steps=6000)
    reached /= reached.sum(axis=1, keepdims=True)
    assert reached == pytest.approx(boltzmann, rel=0, abs=1e-13 * largest)  # after 60 relaxation times: rounding


def test_kernel_is_vectorised():
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    if not features.get("avx"):
        pytest.skip("the processor has no AVX")
    # Compiled afresh, because a kernel that came from the cache on disk has no listing.
    fresh = numba.njit(midpoint_step.signatures[0], error_model="numpy", fastmath={"contract"})(midpoint_step.py_func)
    (listing,) = fresh.inspect_asm().values()
    assert listing.count("vdivpd") >= 4  # the source divides in four places
