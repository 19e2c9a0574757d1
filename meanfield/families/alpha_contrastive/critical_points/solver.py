"""Critical points of a problem: position, stability and basin, and whether the power iteration finds them.

The power iteration is w <- A(w) w/|A(w) w|. For h(z) = h'(z) z the field is A(w) w, so that the change of A comes from
the Jacobian J on the tangent space: with l = w.A w and A_t, A on the tangent space, d(A(v) w)/dv = J + l - A_t, and the
iteration has the Jacobian (J + l)/l (alpha_contrastive.md, section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from meanfield.ensembles.momentum import check_no_velocity
from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.critical_points.circle import CirclePoint, circle_points
from meanfield.families.alpha_contrastive.critical_points.irregularity import irregularity
from meanfield.families.alpha_contrastive.critical_points.mixture import euler_number, missing_index, mixture_points
from meanfield.families.alpha_contrastive.critical_points.rest import SpherePoint
from meanfield.families.alpha_contrastive.critical_points.sphere import sphere_points
from meanfield.families.alpha_contrastive.laws import Conditional, DiscreteLaw, GaussianMixture, Images, Tokens
from meanfield.families.alpha_contrastive.limit.circle import on_circle, tangential, walls_of
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.fields import AnyField, discrete_field, mixture_field, scale_of_angles
from meanfield.families.alpha_contrastive.limit.mixture import MixtureField
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.problems.base import check_problem
from meanfield.process.progress import counted_calls
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

SECOND_ORDER_BOUND = 1.5
"""Bound of the second order of an eigenvector, in units of the change of the matrix over the gap, squared: with a the
element of the change at the eigenvector it is at most ((1 + a) sqrt(1 - a^2), (1 - a^2)/2)."""

POWER = ("roughness", "irregularity", "power_factor", "cosine_top", "mu", "nu", "omega")


def check_critical_points(problem: Problem) -> None:
    """Refuse problems whose critical points are not known, at no cost."""
    check_problem(problem, Problem)
    check_no_velocity(problem.training, "population and SGD")
    if problem.model.layers == 2 or isinstance(problem.data, Tokens | Images | Conditional):
        raise InputError(
            f"model.layers = 2, with data.law = '{problem.data.law}', has critical points that are not enumerated; "
            "take points or a mixture with model.layers = 1"
        )
    if isinstance(problem.data, GaussianMixture):
        mixture_field(problem, problem.data)
        return
    field = discrete_field(problem, problem.data)
    if problem.data.dimension > 2 and any(kink != 0.0 for kink in field.filter.kinks):
        raise InputError(
            f"model.activation = '{problem.model.activation}' has kinks away from 0, and data have "
            f"{problem.data.dimension} coordinates; take one with a kink at 0 at most, or data in the plane"
        )


@solver
def find_critical_points(problem: Problem) -> Solved:
    """Critical points of a filter on the sphere, with their stability, energy and basins.

    In the plane they are enumerated, those on walls included, where the hyperplane w.x = 0 of an atom holds a filter.
    With more coordinates they are searched for from random filters, and shares of basins are those of these filters.

    Parameters
    ----------
    problem : Problem
        With one layer.

    Returns
    -------
    xarray.Dataset
        Points in the order of their energy, the largest first. `rate` is the largest growth rate of small deviations
        of one filter that moves its importance by itself, `rate_frozen` that of one among infinitely many; both are
        along a wall for points on one, and missing where a wall leaves no direction.

    Raises
    ------
    InputError
        If the method does not apply to the problem.

    Notes
    -----
    Source: alpha_contrastive.md, section 3.
    """
    check_critical_points(problem)
    warning = ""
    data = problem.data
    if isinstance(data, GaussianMixture):
        mixture = mixture_field(problem, data)
        if data.dimension == 2:
            rows = _rows_of_circle(problem, mixture, np.empty(0))
        else:
            found = mixture_points(mixture, problem.critical_points.starts, problem.critical_points.seed)
            rows = [_row_of_mixture(mixture, w, share) for w, share in found]
            missing = missing_index(mixture, [w for w, _ in found])
            wanted = euler_number(data.dimension)
            warning = INDEXED if missing == 0 else NOT_INDEXED.format(wanted - missing, wanted)
    else:
        assert isinstance(data, DiscreteLaw)
        field = discrete_field(problem, data)
        if data.dimension == 2:
            walls = walls_of(data.atoms, field.filter.kinks)
            rows = _rows_of_circle(problem, field, walls)
        else:
            points, completeness = sphere_points(field, problem.critical_points.starts, problem.critical_points.seed)
            rows = [_row_of_sphere(field, point, problem.critical_points.starts) for point in points]
            warning = INCOMPLETE[completeness]
    rows.sort(key=lambda row: (-round(row["energy"], 12), *np.round(-row["w"], 9)))
    arrays = {name: np.array([row[name] for row in rows]) for name in (rows or [_empty(data.dimension)])[0]}
    if not rows:
        arrays = {name: np.empty((0, *np.shape(value))) for name, value in _empty(data.dimension).items()}
        warning = "no critical point is isolated: the field is 0 in whole regions, or everywhere"
    elif data.dimension == 2 and sum(row["basin_share"] for row in rows) < 1.0 - 1e-9:
        warning = _RESTING
    if not np.isfinite(arrays["irregularity"]).any():
        del arrays["irregularity"]
    return Solved("critical_points", arrays, warning=warning)


INCOMPLETE = {
    "complete": "",
    "mesh": "points on walls are enumerated, but those between walls are the roots that a mesh of spacing 0.05 shows, "
    "or a finer one where there are no walls and indices do not add up: pairs that are closer may be missing, and "
    "unstable points where the importance is next to nothing",
    "searched": "with more than three coordinates, or many atoms, critical points are searched for from random "
    "filters, not enumerated: points with small basins, saddles and points on walls that do not attract may be "
    "missing; raise critical_points.starts",
}
"""Warnings about critical points, by how many of them are known."""


INDEXED = (
    "critical points are searched for from random filters, not enumerated; (-1)^k of the numbers k of growing "
    "directions add up to the Euler number of the sphere, so that no single one is missing, but a pair may be; raise "
    "critical_points.starts"
)
NOT_INDEXED = (
    "critical points are searched for from random filters, and some are missing: (-1)^k of the numbers k of growing "
    "directions add up to {0:d}, not to the Euler number {1:d} of the sphere; raise critical_points.starts"
)
"""Warnings about critical points of mixtures."""

_RESTING = (
    "filters rest on arcs where the field is 0, because no atom is active there; they belong to no basin, so that the "
    "shares add up to less than 1"
)


def field_of(problem: Problem) -> AnyField:
    """Field of a filter of a problem with one layer."""
    data = problem.data
    if isinstance(data, GaussianMixture):
        return mixture_field(problem, data)
    assert isinstance(data, DiscreteLaw)
    return discrete_field(problem, data)


def _power(field: AnyField, w: FloatArray, J: FloatArray, basis: FloatArray) -> dict[str, float]:
    """Quantities of power iteration where the field is A(w) w, between walls."""
    activation = field.filter if not isinstance(field, MixtureField) else None
    if activation is not None and activation.straight is None:
        return _NO_POWER
    found = at_point(field.matrix, w, J, basis)
    return found if isinstance(field, DiscreteField) else found | {"irregularity": irregularity(field, w)}


_NO_POWER = dict.fromkeys(POWER, np.nan)


def _common(field: AnyField, w: FloatArray) -> dict[str, Any]:
    row = w[None]
    return {"w": w, "energy": float(field.energy(row)[0]), "objective": float(field.objective(row)[0])}


def _rows_of_circle(problem: Problem, field: AnyField, walls: FloatArray) -> list[dict[str, Any]]:
    with counted_calls("critical points") as counting:
        points = circle_points(counting(tangential(field)), walls, scale_of_angles(problem))
    return [_row_of_circle(field, point) for point in points]


def _row_of_circle(field: AnyField, point: CirclePoint) -> dict[str, Any]:
    w = on_circle(np.array([point.angle]))[0]
    rates, power = {"rate": np.nan, "rate_frozen": np.nan}, _NO_POWER
    if point.wall:
        sides = [field.matrix(on_circle(np.array([point.angle + step]))[0]) for step in (-1e-9, 1e-9)]
    else:
        sides = [field.matrix(w)]
        basis = np.array([[-w[1]], [w[0]]])
        moving, frozen = field.jacobians(w, basis)
        power = _power(field, w, moving, basis)
        rates = {"rate": float(moving[0, 0]), "rate_frozen": float(frozen[0, 0])}
    return (
        _common(field, w)
        | rates
        | {"stable": int(point.attracts), "wall": int(point.wall)}
        | eigen_properties(sides, w)
        | {"basin_share": point.share}
        | power
    )


def _row_of_sphere(field: DiscreteField, point: SpherePoint, starts: int) -> dict[str, Any]:
    z = np.abs(field.atoms @ point.w)
    wall = bool(field.filter.kinks) and bool(np.any(z <= 1e-10 * np.linalg.norm(field.atoms, axis=1)))
    rates = [rate if np.isfinite(rate) else np.nan for rate in (point.rate, point.rate_frozen)]
    matrices = [field.matrix(point.w, point.slope)]
    properties = eigen_properties(matrices, point.w)
    power = _NO_POWER
    if point.held.any():  # on neither side is it an eigenvector
        properties |= {"lme": 0}
    elif not wall:
        basis = np.linalg.svd(point.w[None])[2][1:].T
        power = _power(field, point.w, field.jacobians(point.w, basis)[0], basis)
    return (
        _common(field, point.w)
        | {"rate": rates[0], "rate_frozen": rates[1], "stable": int(point.rate < 0), "wall": int(wall)}
        | properties
        | {"basin_share": point.votes / starts}
        | power
    )


def _row_of_mixture(field: AnyField, w: FloatArray, share: float) -> dict[str, Any]:
    basis = np.linalg.svd(w[None])[2][1:].T
    J = field.jacobians(w, basis)[0]
    rate = float(np.linalg.eigvalsh(J)[-1])
    return (
        _common(field, w)
        | {"rate": rate, "rate_frozen": rate, "stable": int(rate < 0), "wall": 0}
        | eigen_properties([field.matrix(w)], w)
        | {"basin_share": share}
        | _power(field, w, J, basis)
    )


def eigen_properties(matrices: list[FloatArray], w: FloatArray) -> dict[str, Any]:
    """w.A w, whether w is a locally maximal eigenvector of A, and the gap of its two largest eigenvalues.

    Parameters
    ----------
    matrices : list of ndarray, shape (coordinates, coordinates)
        A on each side of a wall; the side on which w is closest to an eigenvector counts.
    w : ndarray, shape (coordinates,)
    """
    best: tuple[float, dict[str, Any]] | None = None
    for A in matrices:
        values = np.linalg.eigvalsh(A)
        value = float(w @ A @ w)
        top = max(abs(float(values[-1])), np.finfo(float).tiny)
        residual = float(np.abs(A @ w - value * w).max()) / top
        gap = float(values[-1] - values[-2])
        same = abs(value - values[-1]) <= 1e-6 * top
        is_top = residual <= 1e-6 and same and gap > 1e-9 * top  # at walls A is off by 1e-9 times |x|
        if best is None or residual < best[0]:
            best = residual, {"eigenvalue": value, "lme": int(is_top), "gap": gap}
    assert best is not None
    return best[1]


def _empty(dimension: int) -> dict[str, Any]:
    names = ("energy", "objective", "rate", "rate_frozen", "stable", "wall", "eigenvalue", "lme", "gap", "basin_share")
    return {"w": np.zeros(dimension)} | dict.fromkeys((*names, *POWER), 0.0)


def existence_constants(values: FloatArray, cosine: float, lipschitz: float) -> dict[str, float]:
    """Constants of the theorem by which power iteration converges where omega < 1 around a point.

    Parameters
    ----------
    values : ndarray
        Eigenvalues of A(w), increasing.
    cosine : float
        c = |w.phi_1|.
    lipschitz : float
        L, the Lipschitz constant of A.

    Returns
    -------
    dict
        mu = (1 + c)/(2 c^2) (l_2/l_1)^2, nu = 2 kappa L^2 (1 + mu c) + (2 L/gap) sqrt(mu (1 + mu c)), omega = mu + nu.
    """
    gap = float(values[-1] - values[-2])
    if cosine <= 1e-9 or gap <= 0.0:  # eigenvectors of different eigenvalues, to rounding
        return dict.fromkeys(("mu", "nu", "omega"), np.inf)
    mu = (1.0 + cosine) / (2.0 * cosine**2) * float(values[-2] / values[-1]) ** 2
    kappa = SECOND_ORDER_BOUND / gap**2  # of the second order of the top eigenvector, by perturbation theory
    inner = 1.0 + mu * cosine
    nu = 2.0 * kappa * lipschitz**2 * inner + 2.0 * lipschitz / gap * np.sqrt(mu * inner)
    return {"mu": mu, "nu": float(nu), "omega": float(mu + nu)}


def at_point(
    matrix: Callable[[FloatArray], FloatArray], w: FloatArray, J: FloatArray, basis: FloatArray
) -> dict[str, float]:
    """Quantities of a critical point between walls, for h(z) = h'(z) z.

    Parameters
    ----------
    matrix : callable
        A(w).
    w : ndarray, shape (coordinates,)
    J : ndarray, shape (coordinates - 1, coordinates - 1)
        Jacobian on the tangent space, alpha moving.
    basis : ndarray, shape (coordinates, coordinates - 1)
    """
    A = matrix(w)
    level = float(w @ A @ w)
    change = J + level * np.eye(len(J)) - basis.T @ A @ basis
    values, vectors = np.linalg.eigh(A)
    cosine = min(1.0, abs(float(vectors[:, -1] @ w)))
    slopes = [(matrix(w + 1e-5 * e) - matrix(w - 1e-5 * e)) / 2e-5 for e in basis.T]
    lipschitz = float(np.sqrt(sum(np.linalg.norm(slope, 2) ** 2 for slope in slopes)))
    factor = float(np.abs(1.0 + np.linalg.eigvalsh(J) / level).max()) if level > 0.0 else np.inf
    own = {
        "roughness": float(np.linalg.norm(change, 2)),
        "irregularity": np.nan,
        "power_factor": factor,
        "cosine_top": cosine,
    }
    found = own | existence_constants(values, cosine, lipschitz)
    return {name: value if np.isfinite(value) else np.nan for name, value in found.items()}
