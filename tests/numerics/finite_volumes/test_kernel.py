"""The kernel of one midpoint step: accuracy of its pieces, the scheme against dense linear algebra, vectorisation."""

from functools import cache

import numba
import numpy as np
import pytest
from mpmath import mp, mpf

from meanfield.ingredients.priors import PRIORS
from meanfield.numerics.compiled.vectors import NARROW_LANES, WIDE_LANES, lanes_for, load, store
from meanfield.numerics.finite_volumes.kernel import (
    LARGEST_EXPONENT,
    SERIES_BOUND,
    flux_fractions,
    midpoint_step,
    pack,
    steep_root,
    unpack,
)


@numba.njit(cache=True, error_model="numpy", fastmath={"contract"})
def fill_bernoulli(z, forward, backward):
    for i in range(0, z.size, WIDE_LANES):
        argument = load(z, np.uint64(i), WIDE_LANES)
        n, d, x = flux_fractions(argument, steep_root(argument), 1.0)
        store(forward, np.uint64(i), n / d)
        store(backward, np.uint64(i), n * (x / d))


def both_bernoulli(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """B(-z) and B(z) as the kernel has them."""
    padded = np.resize(z, -(-z.size // WIDE_LANES) * WIDE_LANES)
    forward, backward = np.empty_like(padded), np.empty_like(padded)
    fill_bernoulli(padded, forward, backward)
    return forward[: z.size], backward[: z.size]


@cache
def exact_bernoulli(z: float) -> float:
    with mp.workdps(50):
        return float(mpf(z) / mp.expm1(mpf(z))) if z else 1.0


def advance(P: np.ndarray, a: np.ndarray, b: np.ndarray, k: float, steps: int = 1) -> np.ndarray:
    nodes, cells = P.shape
    packed = pack(P)
    blocks, _, lanes = packed.shape
    tilt = np.concatenate([b, np.repeat(b[-1:], blocks * lanes - nodes)])
    for _ in range(steps):
        after, scratch = np.empty_like(packed), np.empty(cells * (lanes + 1))
        sizes = map(np.uint64, (cells, blocks, lanes))
        midpoint_step(packed.reshape(-1), after.reshape(-1), scratch, a, tilt, k, *sizes)
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


MAGNITUDES = np.concatenate(
    [
        np.geomspace(1e-300, 1e300, 1201),
        np.linspace(0, 50, 1001),
        SERIES_BOUND + np.linspace(-0.2, 0.2, 99),
        [LARGEST_EXPONENT, 0.0],
    ]
)


@pytest.mark.parametrize("sign", [-1, 1])
def test_bernoulli_functions_are_accurate_everywhere(sign):
    z = sign * MAGNITUDES
    for computed, argument in zip(both_bernoulli(z), (-z, z), strict=True):
        exact = np.array([exact_bernoulli(x) for x in argument])
        error = np.abs(computed - exact)
        # 1 - exp(-z) loses two bits at |z| = SERIES_BOUND, and exp(-LARGEST_EXPONENT) = 3e-261 is not followed further
        assert np.all(error <= 3e-15 * exact + np.where(np.abs(z) > LARGEST_EXPONENT, 3e-261 * np.abs(z), 0.0))


def test_ratio_of_the_bernoulli_functions_is_that_of_boltzmann():
    """More accurate than each of them: stationary states depend on nothing else."""
    z = np.concatenate([np.linspace(-50, 50, 2001), np.geomspace(1e-12, 1, 100)])
    forward, backward = both_bernoulli(z)
    assert backward / forward == pytest.approx(np.exp(-z), rel=1e-15)  # exp(-z/2) squared


def test_difference_of_the_bernoulli_functions_is_the_drift():
    z = np.concatenate([-MAGNITUDES, MAGNITUDES])
    forward, backward = both_bernoulli(z)
    assert forward - backward == pytest.approx(z, rel=3e-15, abs=3e-15)  # B(-z) - B(z) = z; B ~ 1 is rounded


# All numbers of nodes, which decide how lanes are filled, meet one k, and all k the numbers that leave lanes empty.
@pytest.mark.parametrize("size", [1e-9, 0.2, 0.3, 2.0, 20.0, 300.0, 700.0, 1e5], ids=lambda size: f"z={size}")
@pytest.mark.parametrize(
    ("nodes", "k"),
    [
        pytest.param(nodes, k, marks=() if k == 1.0 or nodes in (1, WIDE_LANES + 3) else pytest.mark.slow)
        for nodes in (1, NARROW_LANES, NARROW_LANES + 1, WIDE_LANES, WIDE_LANES + 3)
        for k in (1e-3, 1.0, 1e4)
    ],
)
def test_step_solves_the_scheme(size, k, nodes):
    rng = np.random.default_rng(1)
    cells = 24
    P = rng.random((nodes, cells))
    a, b = 0.5 * size * rng.uniform(-1, 1, cells - 1), 0.5 * size * rng.uniform(-1, 1, nodes)
    expected = dense_midpoint(P, a, b, k)
    rounding = 2e-15 * (1 + k * max(size, 1))  # machine precision times the norm of the system, 1 + 4 k C(z)
    assert advance(P, a, b, k) == pytest.approx(expected, rel=1e-13, abs=rounding)  # 1e-13: the Bernoulli functions


@pytest.mark.parametrize("nodes", [NARROW_LANES, WIDE_LANES])
def test_faces_of_one_row_may_need_different_branches(nodes):
    """One node's tilt pushes a whole row of lanes into the branch with exponentials of its own."""
    rng = np.random.default_rng(2)
    P = rng.random((nodes, 16))
    a, b = rng.uniform(-1, 1, 15), np.zeros(nodes)
    alone = advance(P, a, b, 0.7)
    b[-1] = 2 * LARGEST_EXPONENT
    assert advance(P, a, b, 0.7)[:-1] == pytest.approx(alone[:-1], rel=1e-14)  # both branches are exact to rounding


def test_steep_parts_may_cancel():
    """The exponentials of a and b cannot be multiplied where only their sum is small."""
    rng = np.random.default_rng(5)
    P = rng.random((3, 16))
    a, b = 1e4 + rng.uniform(-3, 3, 15), -1e4 + rng.uniform(-3, 3, 3)
    assert advance(P, a, b, 0.7) == pytest.approx(dense_midpoint(P, a, b, 0.7), rel=1e-13)  # the same z is rounded


def test_without_diffusion_the_step_is_upwind_transport():
    """D = Lambda/2 = 0 is 1e-14 to the kernel: k z = v dt/(2h) stays, and B(|z|) vanishes."""
    rng = np.random.default_rng(6)
    P, courant = rng.random((2, 32)), 0.4
    after = advance(P, np.full(31, 1e12), np.array([0.0, -3e12]), courant * 1e-12)
    upwind = np.array([dense_transport(P[0], courant), dense_transport(P[1, ::-1], 2 * courant)[::-1]])
    assert after == pytest.approx(upwind, rel=1e-13)  # rounding of a few dozen cells


def dense_transport(P: np.ndarray, courant: float) -> np.ndarray:
    """Upwind fluxes to the right, nothing through the ends."""
    outflow = np.full(P.size, courant)
    outflow[-1] = 0.0
    system = np.diag(1 + outflow) - np.diag(outflow[:-1], -1)
    return 2 * np.linalg.solve(system, P) - P


@pytest.mark.parametrize(
    "nodes", [1, NARROW_LANES, NARROW_LANES + 1, WIDE_LANES - 1, WIDE_LANES, WIDE_LANES + 1, 3 * WIDE_LANES]
)
def test_unpacking_inverts_packing(nodes):
    P = np.random.default_rng(3).random((nodes, 7))
    packed = pack(P)
    lanes = lanes_for(nodes)
    assert packed.shape == (-(-nodes // lanes), 7, lanes)
    assert np.array_equal(unpack(packed, nodes), P)


def test_lanes_that_fill_up_a_block_hold_copies_of_the_last_node():
    packed = pack(np.arange(6.0).reshape(2, 3))
    assert np.array_equal(packed[0, :, 1:], np.repeat([[3.0], [4.0], [5.0]], NARROW_LANES - 1, axis=1))


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


@pytest.mark.parametrize(
    ("function", "signature", "divisions"),
    [
        (fill_bernoulli, "void(f8[::1], f8[::1], f8[::1])", 4),  # if 8 numbers fit a register; twice as many otherwise
        # Two of the narrow blocks, and the four above of the wide ones, which guard it by default.
        pytest.param(midpoint_step, f"void({'f8[::1], ' * 5}f8, u8, u8, u8)", 6, marks=pytest.mark.slow),
    ],
)
def test_kernel_is_vectorised(function, signature, divisions):
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    if not features.get("avx"):
        pytest.skip("the processor has no AVX")
    # Compiled afresh, because a kernel that came from the cache on disk has no listing.
    fresh = numba.njit(signature, error_model="numpy", fastmath={"contract"})(function.py_func)
    (listing,) = fresh.inspect_asm().values()
    assert listing.count("vdivpd") >= divisions
