"""A density with an exact solution in our solver and in other software, each as a good user would write it.

Ornstein-Uhlenbeck, the equation of one u-node under a linear prior with constant coefficients:

    dP/dt = d/dw (w P) + d2P/dw2,   P_0 = N(1.5, 0.25),   so that   P_t = N(1.5 e^-t, 1 - 0.75 e^-2t).

A contender prepares what can be prepared once, and returns what computes the cell averages of P at t = 1 from P_0. What
it returns is timed: ours, LSODA of SciPy, and py-pde where it is called prepared, are then compiled loops over steps
behind one call from Python, with a copy of P_0 before and a new array of P after; the others loop in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numba
import numpy as np
from scipy.integrate import odeint
from scipy.linalg import solve_banded
from scipy.special import ndtr

from meanfield.numerics.finite_volumes.fipy_step import import_fipy
from meanfield.numerics.finite_volumes.grid import Grid
from meanfield.numerics.finite_volumes.kernel import midpoint_step, pack

Array = np.ndarray
Run = Callable[[], Array]

HALF_WIDTH = 7.0
TARGET = 1e-3
"""Largest error, the integral of |P - exact|, both averaged over the contender's own cells."""
FINE_CELLS = 1000
"""Number of cells of a density that is not known to be smooth."""


def exact(edges: Array, t: float) -> Array:
    """Cell averages of the solution."""
    F = ndtr((edges - 1.5 * np.exp(-t)) / np.sqrt(1 - 0.75 * np.exp(-2 * t)))
    return np.diff(F) / np.diff(edges)


def grid_edges(cells: int) -> Array:
    return np.linspace(-HALF_WIDTH, HALF_WIDTH, cells + 1)


def error(P: Array) -> float:
    """The integral of |P - exact|, at t = 1."""
    edges = grid_edges(len(P))
    return float(np.abs(P - exact(edges, 1.0)).sum() * (edges[1] - edges[0]))


def drift_steps(edges: Array) -> Array:
    """-(V_{i+1} - V_i) for V = w^2/2 at the cell centres."""
    centres = 0.5 * (edges[1:] + edges[:-1])
    return -0.5 * np.diff(centres**2)


@numba.njit(nogil=True)
def march(P, result, scratch, a, b, k, steps):  # type: ignore[no-untyped-def]
    """All steps of one block by the kernel, from compiled code."""
    cells, lanes = np.uint64(a.size + 1), np.uint64(b.size)
    for _ in range(steps):
        midpoint_step(P, result, scratch, a, b, k, cells, np.uint64(1), lanes)
        P, result = result, P
    return P


def _block(cells: int, nodes: int) -> Array:
    """P_0 at nodes that are all alike, in packed layout, shape (cells, lanes)."""
    return pack(np.tile(exact(grid_edges(cells), 0.0), (nodes, 1)))[0]


def our_order_two(cells: int, steps: int, nodes: int = 1) -> Run:
    """One solution, as with `density.order = 2`; some more nodes take no more time than one."""
    edges, start = grid_edges(cells), _block(cells, nodes)
    lanes = start.shape[1]
    P, result, scratch = np.empty(start.size), np.empty(start.size), np.empty(cells * (lanes + 1))
    a, b, k = drift_steps(edges), np.zeros(lanes), 0.5 / steps / (edges[1] - edges[0]) ** 2

    def run() -> Array:
        P[:] = start.reshape(-1)
        return march(P, result, scratch, a, b, k, steps)[::lanes].copy()

    return run


@numba.njit(nogil=True)
def extrapolated_march(start, work, a, b, k, steps):  # type: ignore[no-untyped-def]
    """(4 P_fine - P)/3 in the first node; arrays hold the coarse level, then the fine one."""
    lanes, cells = b.size, (a.size + 2) // 3
    one, both = cells * lanes, 3 * cells * lanes
    work[:both] = start
    scratch = work[2 * both :]
    coarse = march(work[:one], work[both : both + one], scratch, a[: cells - 1], b, k, steps)
    fine = march(work[one:both], work[both + one : 2 * both], scratch, a[cells - 1 :], b, 2.0 * k, 2 * steps)
    P = np.empty(cells)
    for i in range(cells):
        P[i] = (2.0 * (fine[2 * i * lanes] + fine[(2 * i + 1) * lanes]) - coarse[i * lanes]) / 3.0
    return P


def our_order_four(cells: int, steps: int, nodes: int = 1) -> Run:
    """That and one with half the cell width and half the step, extrapolated: `density.order = 4`, the default."""
    levels = cells, 2 * cells
    blocks = [_block(count, nodes) for count in levels]
    lanes = blocks[0].shape[1]
    start = np.concatenate([block.reshape(-1) for block in blocks])
    a, b = np.concatenate([drift_steps(grid_edges(count)) for count in levels]), np.zeros(lanes)
    k = 0.5 / steps / (2 * HALF_WIDTH / cells) ** 2
    work = np.empty(2 * start.size + 2 * cells * (lanes + 1))
    return lambda: extrapolated_march(start, work, a, b, k, steps)


def our_stepper(cells: int, steps: int) -> Run:
    """Each step is a call of the kernel, and asks for the moments."""
    edges = grid_edges(cells)
    grid = Grid(edges, np.zeros((1, 1)), np.ones(1))
    start = pack(exact(edges, 0.0)[None])
    lanes = start.shape[2]
    a, b, k = drift_steps(edges), np.zeros(lanes), 0.5 / steps / grid.h**2
    rows, scratch = grid.h * np.array([grid.centres, grid.centres**2, np.ones(cells)]), np.empty(cells * (lanes + 1))
    sizes = np.uint64(cells), np.uint64(1), np.uint64(lanes)

    def run() -> Array:
        P, result = start.copy(), np.empty_like(start)
        for _ in range(steps):
            midpoint_step(P.reshape(-1), result.reshape(-1), scratch, a, b, k, *sizes)
            rows @ result
            P, result = result, P
        return P[0, :, 0].copy()

    return run


def banded_matrix(edges: Array) -> Array:
    """dP/dt = A P by Scharfetter-Gummel fluxes, as rows of upper, main and lower diagonal."""
    h, z = edges[1] - edges[0], drift_steps(edges)
    z = np.where(np.abs(z) < 1e-12, 1e-12, z)
    forward, backward = -z / np.expm1(-z) / h**2, z / np.expm1(z) / h**2
    A = np.zeros((3, len(edges) - 1))
    A[0, 1:], A[2, :-1] = backward, forward
    A[1, :-1] -= forward
    A[1, 1:] -= backward
    return A


def scipy_banded(cells: int, steps: int) -> Run:
    """Steps of our scheme with `solve_banded` of SciPy."""
    edges = grid_edges(cells)
    start, system = exact(edges, 0.0), -0.5 / steps * banded_matrix(edges)
    system[1] += 1.0

    def run() -> Array:
        P = start
        for _ in range(steps):
            P = 2.0 * solve_banded((1, 1), system, P, check_finite=False) - P
        return P

    return run


def scipy_lsoda(cells: int, digits: int) -> Run:
    """LSODA with a banded Jacobian, from the same fluxes."""
    edges = grid_edges(cells)
    start, A = exact(edges, 0.0), banded_matrix(edges)
    upper, main, lower = A[0, 1:].copy(), A[1].copy(), A[2, :-1].copy()

    def rate(P: Array, _: float) -> Array:
        result = main * P
        result[:-1] += upper * P[1:]
        result[1:] += lower * P[:-1]
        return result

    accuracy = 10.0 ** (-0.5 * digits)
    options: dict[str, Any] = {"ml": 1, "mu": 1, "rtol": accuracy, "atol": 0.1 * accuracy}
    return lambda: odeint(rate, start, [0.0, 1.0], Dfun=lambda P, t: A, **options)[1]


def fipy(cells: int, steps: int) -> Run:
    """Exponential convection term; half a step of backward Euler and P <- 2 P_mid - P is the midpoint rule."""
    library = import_fipy()
    edges = grid_edges(cells)
    mesh = library.Grid1D(nx=cells, dx=edges[1] - edges[0])  # from 0 on
    start, P = exact(edges, 0.0), library.CellVariable(mesh=mesh, hasOld=True)
    velocity = library.FaceVariable(mesh=mesh, rank=1, value=HALF_WIDTH - np.asarray(mesh.faceCenters))
    velocity[..., np.asarray(mesh.exteriorFaces.value)] = 0.0
    equation = library.TransientTerm() == library.DiffusionTerm(coeff=1.0) - library.ExponentialConvectionTerm(velocity)
    solver = library.LinearLUSolver(tolerance=1e-13, criterion="initial")

    def run() -> Array:
        P.setValue(start)
        for _ in range(steps):
            P.updateOld()
            old = P.value.copy()
            equation.solve(var=P, dt=0.5 / steps, solver=solver)
            P.setValue(2.0 * P.value - old)
        return P.value.copy()

    return run


def _py_pde(cells: int) -> tuple[Any, Any, Any]:
    import pde

    edges = grid_edges(cells)
    grid = pde.CartesianGrid([[-HALF_WIDTH, HALF_WIDTH]], [cells])
    equation = pde.PDE({"P": "laplace(P) + d_dx(x * P)"}, bc={"value": 0})
    return pde, equation, pde.ScalarField(grid, exact(edges, 0.0))


def _py_pde_stepper(cells: int, name: str, dt: float | None, **options: Any) -> Run:
    """Compiled and prepared, with no trackers."""
    pde, equation, field = _py_pde(cells)
    stepper = pde.solvers.SolverBase.from_name(name, pde=equation, backend="numba", **options).make_stepper(field, dt)
    start = field.data.copy()

    def run() -> Array:
        field.data[:] = start
        stepper(field, 0.0, 1.0)
        return np.array(field.data)

    return run


def py_pde_euler(cells: int, steps: int) -> Run:
    return _py_pde_stepper(cells, "euler", 1.0 / steps)


def py_pde_lsoda(cells: int, digits: int) -> Run:
    accuracy = 10.0 ** (-0.5 * digits)
    options = {"lband": 1, "uband": 1, "rtol": accuracy, "atol": 0.1 * accuracy}
    return _py_pde_stepper(cells, "scipy", None, method="LSODA", **options)


def py_pde_documented(cells: int, _: int) -> Run:
    """As its documentation begins: `PDE(...).solve(state, t_range)`."""
    _, equation, field = _py_pde(cells)
    return lambda: np.array(equation.solve(field, t_range=1.0, tracker=None).data)


def py_pde_scipy(cells: int, _: int) -> Run:
    """`solve` once more with SciPy's integrator: nothing is compiled anew."""
    _, equation, field = _py_pde(cells)
    run = partial(equation.solve, field, t_range=1.0, tracker=None, solver="scipy")
    run()
    return lambda: np.array(run().data)


class Contender(NamedTuple):
    """Something that solves the problem, and its settings: cells, and steps or half digits of an adaptive method."""

    name: str
    prepare: Callable[..., Run]
    coarsest: tuple[int, int]
    """Least work that reaches the target, found by trying cells in steps of 3 % and all steps."""
    on_fine_cells: int
    """Least number of steps that reaches the target on `FINE_CELLS` cells."""


OURS = [
    Contender("ours, order 4", our_order_four, (22, 3), 4),
    Contender("ours, order 2", our_order_two, (130, 10), 10),
]
OTHER_SOLVERS = [
    Contender("ours, order 2 stepped from Python", our_stepper, (130, 10), 10),
    Contender("SciPy solve_banded, same scheme", scipy_banded, (130, 10), 10),
    Contender("SciPy LSODA, banded", scipy_lsoda, (138, 4), 5),
    Contender("FiPy, exponential term, midpoint", fipy, (130, 10), 10),
]
PY_PDE = [
    Contender("py-pde, explicit Euler, prepared", py_pde_euler, (146, 222), 10_300),
    Contender("py-pde, LSODA banded, prepared", py_pde_lsoda, (138, 6), 4),
    Contender("py-pde, solve() as documented, which compiles in each call", py_pde_documented, (170, 0), 0),
    Contender("py-pde, solve(solver='scipy'), the second call", py_pde_scipy, (170, 0), 0),
]


def contenders() -> list[Contender]:
    """Contenders that are installed."""
    return [*OURS, *OTHER_SOLVERS, *(PY_PDE if find_spec("pde") else [])]
