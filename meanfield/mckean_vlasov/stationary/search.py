"""Search for all stationary states, without a starting guess, and their images.

Laws of coordinates are symmetric. Where T, which changes signs of features and, with equal laws, their places, maps q
to q' and g, Lambda and their derivatives at q to those at q', the density at q' is P(w|T'u), whatever the prior, and
both states have the same norm, multiplier, spectrum and errors. With three features there are up to 27 states, of which
8 or fewer are no images of each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from meanfield.errors import InputError
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary.effort import Accuracy, Effort
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.spectra import equations_of
from meanfield.mckean_vlasov.stationary.state import Coefficients, coefficients
from meanfield.mckean_vlasov.stationary.unknowns import closure_at, images, starts, unknowns_at
from meanfield.numerics.continuation import (
    Equations,
    directions,
    find_roots,
    is_among,
    newton,
    signed_permutations,
)
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

IMAGE_TOLERANCE = 1e-7
"""Largest difference of coefficients of images, relative to the largest: overlaps are found to many digits more."""


class Orbit(NamedTuple):
    """A root with the matrices that map it to its images, the first of which is 1."""

    q: FloatArray
    maps: list[FloatArray]

    @property
    def images(self) -> list[FloatArray]:
        """All roots of the orbit."""
        return [T @ self.q for T in self.maps]


def orbits(limit: Limit, overlaps: Sequence[FloatArray]) -> list[Orbit]:
    """Roots, each as the first of its orbit or as an image."""
    found: list[tuple[Orbit, Coefficients]] = []
    candidates = list(_of_laws(limit))
    for q in overlaps:
        here = coefficients(limit, q)
        for orbit, there in found:
            to_here = next((T for T in candidates if _maps(T, orbit.q, there, q, here)), None)
            if to_here is not None:
                orbit.maps.append(to_here)
                break
        else:
            found.append((Orbit(q, [np.eye(len(q))]), here))
    return [orbit for orbit, _ in found]


def symmetries(limit: Limit) -> list[FloatArray]:
    """Signed permutations T with F(T x) = T F(x): the laws do not see them, and the closure follows them."""
    d1, place = limit.overlaps, np.array([0.43, -0.29, 0.17])[: len(limit.coordinates)]  # without a symmetry of its own
    probe = unknowns_at(limit, place, 0.0)
    values = closure_at(limit, probe)

    def follows(T: FloatArray) -> bool:
        there = closure_at(limit, T @ probe)
        same = np.abs(there[:d1] - T[:d1, :d1] @ values[:d1]).max() <= IMAGE_TOLERANCE * np.abs(values[:d1]).max()
        return bool(same and np.all(np.abs(there[d1:] - values[d1:]) <= IMAGE_TOLERANCE * np.abs(values[d1:])))

    return [T for T in _of_laws(limit) if follows(T)]


def _of_laws(limit: Limit) -> Iterator[FloatArray]:
    """Signed permutations of features that the joint law of the coordinates does not see; a free norm stays."""
    laws = limit.coordinates
    for image in signed_permutations(np.arange(1.0, len(laws) + 1)):
        order = np.abs(image).astype(int) - 1
        if all(laws[i] == law for i, law in zip(order, laws, strict=True)):
            own = np.sign(image)[:, None] * np.eye(len(laws))[order]
            weighted = [] if limit.spectrum is None else [own, np.eye(1)]
            yield block_diag(own, *weighted, np.eye(int(limit.free_norm)))


def _maps(T: FloatArray, q: FloatArray, there: Coefficients, image: FloatArray, here: Coefficients) -> bool:
    """Whether T maps a state to another one."""
    mapped, found = (
        np.concatenate([np.ravel(part) for part in c if part is not None])
        for c in (mapped_coefficients(T, there), here)
    )
    alike = np.abs(mapped - found).max() <= IMAGE_TOLERANCE * np.abs(found).max()
    return bool(alike and np.abs(T @ q - image).max() <= IMAGE_TOLERANCE)


def mapped_coefficients(T: FloatArray, c: Coefficients) -> Coefficients:
    """Coefficients at the image T x."""
    own = T[: len(c.g), : len(c.g)]
    growth_slope = None if c.growth_slope is None else T @ c.growth_slope
    slopes = own @ c.g_slope @ T.T, T @ c.diffusion_slope
    return Coefficients(own @ c.g, c.diffusion, *slopes, c.growth, growth_slope)


MOST_FEATURES = 3
"""Largest number of features: the numbers of starts and of nodes grow like powers with it."""

ROUGH_ROOT = 1e-8
"""Largest component of F/V at a root before it is polished: V may be so small that rounding allows no less."""

SEARCH = Accuracy(norm=1e-6, averages=1e-8, fineness=0.5, one_sided=True)
"""Accuracy far from roots."""

MOST_DENSITIES = 500_000
"""Number of densities from which on a search takes no more starts: they take 20 to 45 microseconds each, 10 to 23 s."""

MOST_FOR_A_ROOT = 100_000
"""Number of densities from which on a root that is polished is given up: most take a tenth, and one that rounding or
nodes with negative weights have made up may take twenty times as many."""

NODE_ERROR = 1e-10
"""Largest error of q by the nodes in u that is accepted while there are more nodes to take."""


def check_features(features: int) -> None:
    """Refuse more features than the search can cover."""
    if features > MOST_FEATURES:
        raise InputError(
            f"features: {features} of them, but stationary states are found for one to {MOST_FEATURES}; "
            "remove features, or use the order parameters or SGD"
        )


def all_overlaps(
    equations: StationaryEquations, known: Sequence[FloatArray] = (), rough_limit: Limit | None = None
) -> list[FloatArray]:
    """Roots of all stationary states that are not known yet, in order.

    Parameters
    ----------
    rough_limit : Limit, optional
        The limit with a closure that is known to a few digits, and sooner, for places far from roots.

    Notes
    -----
    Completeness has a witness where the norm is kept. |E[u w]|^2 is below E[w^2], so that F points inwards on the
    sphere, and the indices sign det(-dF/dx) of all roots add up to 1 (Poincare and Hopf) where every overlap has a
    density of the norm. Where they do not, the search goes on from further starts.
    """
    limit, found = equations.limit, list(known)
    alike = symmetries(limit)
    effort, latest = equations.effort, equations.effort.densities + MOST_DENSITIES
    places = takewhile(lambda _: effort.densities < latest, starts(limit))
    with progress_bar(math.inf, "search for stationary states", " evaluations") as bar:
        rough = equations.like(accuracy=SEARCH, limit=rough_limit)

        def watched(q: FloatArray) -> tuple[FloatArray, FloatArray]:
            bar.update()
            return _by_spread(rough, equations, q)

        for _ in range(4):  # searches: each ends with starts that bring nothing new
            roots = find_roots(watched, places, partial(images, limit), found, ROUGH_ROOT, alike)
            found += polished(equations, roots)
            no_witness = limit.free_norm or limit.spectrum is not None
            if no_witness or sum(index_of(equations, x) for x in found) == 1 or not _exists_everywhere(equations):
                break
    effort.cut_short |= effort.densities >= latest
    return sorted(found[len(known) :], key=in_order)


def _by_spread(
    rough: StationaryEquations, accurate: StationaryEquations, q: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """F/V and its Jacobian, accurate where Newton's step is short or V is small."""
    state = rough.state(q)
    if state is None:
        return rough.nowhere(q)
    values, slopes = rough.scaled(state)
    # Newton steps below 1e-4 are made with full accuracy, and so is a state with V up to 1e-4, by which the errors of
    # `SEARCH` of 1e-6 or so are divided.
    if state.spread > 1e-4 and np.abs(np.linalg.lstsq(slopes, -values, rcond=None)[0]).max() > 1e-4:
        return values, slopes
    accurate.hint = rough.hint
    return accurate.by_spread(q)


def in_order(q: FloatArray) -> list[float]:
    """Key by which roots are sorted: rounding moves none."""
    rounded: list[float] = np.round(q, 9).tolist()
    return rounded


def polished(equations: StationaryEquations, overlaps: Sequence[FloatArray]) -> list[FloatArray]:
    """Roots close to some overlaps, as accurate as they can be.

    Notes
    -----
    Where noise is small, the rounding of g may move F by more than `newton` accepts; then F/V is what vanishes, unless
    the norm is free.
    """
    roots = []
    for q in overlaps:
        latest = equations.effort.densities + MOST_FOR_A_ROOT
        root = newton(_until(latest, equations, equations), q)
        if root is None and not equations.limit.free_norm:
            root = newton(_until(latest, equations, equations.by_spread), q, tolerance=ROUGH_ROOT)
        roots.append(root)
    return [root for root in roots if root is not None]


def _until(latest: int, equations: StationaryEquations, values: Equations) -> Equations:
    """Values and Jacobian of the equations until so many densities have been integrated, and then NaN."""
    return lambda q: values(q) if equations.effort.densities < latest else equations.nowhere(q)


def index_of(equations: StationaryEquations, q: FloatArray) -> float:
    """Index of a root, sign det(-dF/dq), or NaN if no density is found there any more."""
    with np.errstate(invalid="ignore"):
        return index_by(equations(q)[1])


def index_by(jacobian: FloatArray) -> float:
    """Index of a root with this Jacobian of F."""
    return float(np.sign(np.linalg.det(-jacobian)))


def probes(d1: int) -> list[FloatArray]:
    """Overlaps at which densities of unit norm are the last to exist: the centre, and others towards the sphere."""
    # A density of unit norm must exist up to |q| = 0.97 for the indices of states to add up.
    return [np.zeros(d1), *(0.97 * direction for direction in directions(d1))]


def _exists_everywhere(equations: StationaryEquations) -> bool:
    """Whether there is a density of unit norm wherever one is the last to exist."""
    return all(equations.state(q) is not None for q in probes(len(equations.limit.coordinates)))


def resolved(
    limit: Limit, effort: Effort, rough_limit: Limit | None = None, near: Sequence[FloatArray] | None = None
) -> tuple[StationaryEquations, list[Orbit]]:
    """All roots, with as many nodes in u as they need, and the equations with these nodes; see `all_states`."""
    equations = equations_of(limit, effort=effort)
    roots = all_overlaps(equations, rough_limit=rough_limit) if near is None else polished(equations, near)
    equations, found = _refined(equations, orbits(limit, roots))
    kept = not limit.free_norm and not limit.prior.functions.linear
    effort.rare |= kept and not found and equations.coordinates.has_tails
    return equations, found


def _refined(equations: StationaryEquations, found: list[Orbit]) -> tuple[StationaryEquations, list[Orbit]]:
    """Overlaps on finer nodes until these leave no error, and after the finest on nodes that resolve layers."""
    while not all(equations.node_error(orbit.q) <= NODE_ERROR for orbit in found):
        finer = equations.coordinates.finer
        if finer is None:
            return _with_layers(equations, found)
        equations = equations.like(finer)
        found = _polished_orbits(equations, found)
    return equations, found


def _polished_orbits(equations: StationaryEquations, found: Sequence[Orbit]) -> list[Orbit]:
    """Orbits on finer nodes, where some that had been apart may be one; those without a root there are counted."""
    overlaps: list[FloatArray] = []
    for orbit in found:
        roots = polished(equations, [orbit.q])
        equations.effort.lost += not roots
        for image in (T @ q for q in roots for T in orbit.maps):
            if not is_among(image, overlaps):
                overlaps.append(image)
    return orbits(equations.limit, overlaps)


def _with_layers(equations: StationaryEquations, found: list[Orbit]) -> tuple[StationaryEquations, list[Orbit]]:
    """Overlaps with nodes in u that resolve the layers of all states, where any number of others leaves an error."""
    states = [state for state in (equations.state(orbit.q) for orbit in found) if state is not None]
    if not (equations.coordinates.takes_layers and states):
        return equations, found
    resolving = equations.like(equations.layers(states))
    return resolving, _polished_orbits(resolving, found)
