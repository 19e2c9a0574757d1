"""Feature matrix F and its spectrum at finite N.

F has independent N(0, 1) entries, or F = sqrt(N) diag(sqrt(rho)) V with orthonormal rows of V, uniformly distributed.
The eigenvectors of F F^T are then the axes of the latent space, which changes nothing: latents and teachers are
isotropic, and latents that are not Gaussian reach an input as sums over all axes.

The limit belongs to columns of length sqrt(D), so that all inputs have one law (hidden_manifold.md, section 1). Those
of such matrices differ by O(1/sqrt(D)), and so do the means of an f that is not odd: together a vector whose length
does not vanish, which the student learns. So columns are made equal, unless a problem asks for what was drawn.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.spectra import IndependentFeatures
from meanfield.typing import FloatArray, IntArray

SAME_LENGTH = 1e-12
"""Largest relative difference of squares of lengths that is rounding."""


class Blocks(NamedTuple):
    """Eigenspaces of F F^T/N.

    Parameters
    ----------
    rho : ndarray, shape (blocks,)
        Eigenvalues, increasing.
    size : ndarray of int, shape (blocks,)
        Their multiplicities, at least 1, which add up to D.
    teacher : ndarray, shape (blocks,)
        Share t(rho)/T of the teacher.
    """

    rho: FloatArray
    size: IntArray
    teacher: FloatArray


def latent_dimension(problem: Problem) -> int:
    """D, the whole number next to delta N.

    Raises
    ------
    InputError
        If the latent space or the input space has no room for the vectors of a start.
    """
    N, delta = problem.particles.dimension, problem.inputs.aspect_ratio
    D = round(delta * N)
    extra = int(np.count_nonzero([component.mean_elsewhere for component in problem.inputs.mixture]))
    latent = problem.teachers + extra
    inputs = problem.students + problem.teachers
    if latent > D or inputs > N:
        space, has, needed = ("latents", D, latent) if latent > D else ("inputs", N, inputs)
        raise InputError(
            f"particles.dimension = {N} with inputs.aspect_ratio = {delta:g}: {has} {space} have no room for {needed} "
            "independent vectors of students, teachers and means; raise particles.dimension"
        )
    return D


def blocks_of(problem: Problem) -> Blocks | None:
    """Eigenspaces that the problem prescribes; None where F has independent entries.

    An eigenvalue has as many of the D axes as midpoints (i + 1/2)/D of its stretch of cumulated weights.

    Raises
    ------
    InputError
        If too few eigenvalues are 0 for D > N, as for a spectrum of D' < D values in a file.
    """
    spectrum = problem.inputs.spectrum
    if isinstance(spectrum, IndependentFeatures):
        return None
    D, N = latent_dimension(problem), problem.particles.dimension
    atoms = spectrum.atoms
    order = np.argsort(atoms.rho, kind="stable")
    ends = np.cumsum(atoms.weight[order])
    before = np.ceil(D * ends / ends[-1] - 0.5).astype(np.int64)  # midpoints below each end
    size = np.diff(before, prepend=0)
    chosen, size = order[size > 0], size[size > 0]
    blocks = Blocks(atoms.rho[chosen], size, atoms.teacher[chosen])
    rank = int(blocks.size[blocks.rho > 0].sum())
    if rank > N:
        raise InputError(
            f"inputs.spectrum: {rank} of D = {D} eigenvalues are positive, but F F^T/N has rank N = {N} at most; give "
            "more eigenvalues 0, or lower inputs.aspect_ratio"
        )
    return blocks


def draw_features(problem: Problem, blocks: Blocks | None, rng: Generator) -> FloatArray:
    """F, shape (D, N)."""
    N = problem.particles.dimension
    equal = problem.particles.column_lengths == "equal"
    if blocks is None:
        F = rng.standard_normal((latent_dimension(problem), N))
        return np.asarray(F * np.sqrt(len(F) / np.sum(F**2, axis=0))) if equal else F
    eigenvalues = np.repeat(blocks.rho, blocks.size)
    rows = np.flatnonzero(eigenvalues)
    orthonormal, triangle = np.linalg.qr(rng.standard_normal((N, len(rows))))
    F = np.zeros((len(eigenvalues), N))
    # With a positive diagonal of the triangle the columns are uniformly distributed.
    F[rows] = np.sqrt(N * eigenvalues[rows])[:, None] * (orthonormal * np.sign(np.diag(triangle))).T
    return with_equal_columns(F) if equal else F


def with_equal_columns(F: FloatArray) -> FloatArray:
    """F times an orthogonal matrix, with columns of one length: F F^T stays what it is.

    A short column and a long one are rotated in their plane until the short one has the right length; what is left
    goes on as a short or a long one (Davies and Higham, BIT 40, 640, 2000).
    """
    columns = F.T.copy()
    square = np.sum(columns**2, axis=1)
    right = float(square.mean())
    short = [int(i) for i in np.flatnonzero(square < right * (1.0 - SAME_LENGTH))]
    long = [int(i) for i in np.flatnonzero(square > right * (1.0 + SAME_LENGTH))]
    while short and long:
        i, j = short.pop(), long.pop()
        product = float(columns[i] @ columns[j])
        lack = right - square[i]
        root = math.sqrt(product**2 + (square[j] - right) * lack)
        tangent = lack / (product + math.copysign(root, product))
        cosine = 1.0 / math.sqrt(1.0 + tangent**2)
        sine = tangent * cosine
        columns[i], columns[j] = cosine * columns[i] + sine * columns[j], cosine * columns[j] - sine * columns[i]
        square[j] -= lack
        (short if square[j] < right else long).append(j)
    return columns.T
