"""Spectra: laws of eigenvalues rho, quadrature nodes of averages over them, and quantiles for finite N.

Order parameters are entire functions of the eigenvalue, so that polynomials through the nodes give them elsewhere.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from pydantic import Field
from scipy.linalg import eigh_tridiagonal

from meanfield.errors import InputError
from meanfield.ingredients.file_part import FilePart
from meanfield.ingredients.laws.base import Values, check_probabilities
from meanfield.ingredients.laws.empirical import read_samples
from meanfield.ingredients.part import Part, after_fields
from meanfield.typing import FloatArray

FINE = 4096
"""Panels along an angle by which quantiles of the Marchenko-Pastur law are found, to 1e-6: runs scatter by more."""


class Nodes(NamedTuple):
    """Quadrature nodes of averages over the spectrum.

    Parameters
    ----------
    rho, weight : ndarray, shape (nodes,)
        Eigenvalues, and weights that add up to 1.
    teacher : ndarray, shape (nodes,)
        t(rho)/T, the share of the teacher at an eigenvalue.
    """

    rho: FloatArray
    weight: FloatArray
    teacher: FloatArray


class _Spectrum(Part):
    """Law of eigenvalues."""

    def nodes(self, count: int) -> Nodes:
        """Quadrature nodes of averages of smooth functions of rho, and all eigenvalues if there are few.

        Parameters
        ----------
        count : int
            Their number, unless there are fewer eigenvalues.
        """
        raise NotImplementedError

    def quantiles(self, share: FloatArray) -> Nodes:
        """Eigenvalues below which there are some shares of all, with equal weights, and the teacher there."""
        raise NotImplementedError

    def ends(self) -> FloatArray:
        """Smallest and largest eigenvalue, and others between which there are none, shape (ends,)."""
        return self.quantiles(np.array([0.0, 1.0])).rho

    def exact_nodes(self) -> int | None:
        """Number of eigenvalues; None for infinitely many."""
        return None

    def in_words(self, matrix: str, look_up: bool = True) -> str:
        """The eigenvalues of a matrix, for `meanfield.explain`; `look_up` says whether files may be opened."""
        raise NotImplementedError


class MarchenkoPastur(_Spectrum):
    """Spectrum of covariances of independent entries, in the limit."""

    law: Literal["marchenko_pastur"] = "marchenko_pastur"
    aspect_ratio: float = Field(
        ge=1e-3, le=1e3, description="delta, coordinates per sample of the covariance, for instance 0.5"
    )

    def nodes(self, count: int) -> Nodes:
        """Gauss nodes of the Marchenko-Pastur law; the atom at 0 for delta > 1 is one of them to rounding.

        The Jacobi matrix has the diagonal 1, 1 + delta, 1 + delta, ... and the off-diagonal sqrt(delta).
        """
        diagonal = np.full(count, 1.0 + self.aspect_ratio)
        diagonal[0] = 1.0
        rho, vectors = eigh_tridiagonal(diagonal, np.full(count - 1, np.sqrt(self.aspect_ratio)))
        return Nodes(np.maximum(rho, 0.0), vectors[0] ** 2, np.ones(count))

    def ends(self) -> FloatArray:
        """See `_Spectrum.ends`."""
        roots = 1.0 + np.array([-1.0, 1.0]) * np.sqrt(self.aspect_ratio)
        return np.append(roots**2, np.zeros(int(self.aspect_ratio > 1)))

    def in_words(self, matrix: str, look_up: bool = True) -> str:
        """See `_Spectrum.in_words`."""
        root = float(np.sqrt(self.aspect_ratio))
        atom = f", and 0 with the share {1 - 1 / self.aspect_ratio:.3g}" if self.aspect_ratio > 1 else ""
        ends = f"{(1 - root) ** 2:.4g} to {(1 + root) ** 2:.4g}"
        return f"Marchenko-Pastur, independent entries: eigenvalues of {matrix} from {ends}{atom}"

    def quantiles(self, share: FloatArray) -> Nodes:
        """See `_Spectrum.quantiles`; by the density along the angle of rho = 1 + delta - 2 sqrt(delta) cos(angle)."""
        delta = self.aspect_ratio
        angle = np.linspace(0.0, np.pi, FINE + 1)
        rho = 1.0 + delta - 2.0 * np.sqrt(delta) * np.cos(angle)
        middle = 0.5 * (angle[1:] + angle[:-1])
        density = np.sin(middle) ** 2 / (1.0 + delta - 2.0 * np.sqrt(delta) * np.cos(middle))
        below = np.append(0.0, np.cumsum(density)) / density.sum()
        zeros = max(0.0, 1.0 - 1.0 / delta)
        found = np.where(share < zeros, 0.0, np.interp((share - zeros) / (1.0 - zeros), below, rho))
        return Nodes(found, np.full(len(share), 1.0 / len(share)), np.ones(len(share)))


class PowerLaw(_Spectrum):
    """Spectrum of eigenvalues that fall with their rank x as (x_0 + (1 - x_0) x)^-exponent, x between 0 and 1."""

    law: Literal["power_law"] = "power_law"
    exponent: float = Field(gt=0, le=100, description="of the rank, by which eigenvalues fall")
    range: float = Field(gt=1, le=1e8, description="the largest eigenvalue divided by the smallest, for instance 50.0")
    teacher: float = Field(
        default=0.0, ge=-10, le=10, description="t(rho)/T is proportional to rho to this power; 0: it is 1 everywhere"
    )

    def nodes(self, count: int) -> Nodes:
        """See `_Spectrum.nodes`; those of Gauss and Legendre along log(rho), where wide ranges need few."""
        x, weight = leggauss(count)
        log_rho = 0.5 * (x + 1.0) * np.log(self.range)
        weight = weight * np.exp(-log_rho / self.exponent)
        weight /= weight.sum()
        return self._with_teacher(np.exp(log_rho) / (weight @ np.exp(log_rho)), weight)

    def in_words(self, matrix: str, look_up: bool = True) -> str:
        """See `_Spectrum.in_words`."""
        uneven = "" if self.teacher == 0.0 else f", where the teacher has a share like rho^{self.teacher:g}"
        return f"eigenvalues of {matrix} that fall like rank^-{self.exponent:g} by a factor of {self.range:g}{uneven}"

    def quantiles(self, share: FloatArray) -> Nodes:
        """See `_Spectrum.quantiles`; eigenvalues are divided by their mean."""
        least = self.range ** (-1.0 / self.exponent)
        rho = (1.0 - (1.0 - least) * share) ** -self.exponent
        return self._with_teacher(rho / rho.mean(), np.full(len(share), 1.0 / len(share)))

    def ends(self) -> FloatArray:
        """See `_Spectrum.ends`; nodes lie evenly about the middle of log(rho)."""
        rho = self.nodes(64).rho  # which resolve the mean of the widest range to rounding
        return np.asarray(np.sqrt(rho[0] * rho[-1]) * self.range ** np.array([-0.5, 0.5]))

    def _with_teacher(self, rho: FloatArray, weight: FloatArray) -> Nodes:
        teacher = (rho / rho.max()) ** self.teacher
        return Nodes(rho, weight, teacher / (weight @ teacher))


class _Discrete(_Spectrum):
    """Spectrum of finitely many eigenvalues."""

    @property
    def atoms(self) -> Nodes:
        """The eigenvalues with their weights."""
        raise NotImplementedError

    def nodes(self, count: int) -> Nodes:
        """The eigenvalues, or `count` Gauss nodes of their measure if there are more."""
        return _reduced(self.atoms, count)

    def quantiles(self, share: FloatArray) -> Nodes:
        """See `_Spectrum.quantiles`."""
        rho, weight, teacher = self.atoms
        order = np.argsort(rho, kind="stable")
        ends = np.cumsum(weight[order])
        chosen = order[np.minimum(np.searchsorted(ends / ends[-1], share), len(rho) - 1)]
        return Nodes(rho[chosen], np.full(len(share), 1.0 / len(share)), teacher[chosen])

    def exact_nodes(self) -> int | None:
        """See `_Spectrum.exact_nodes`."""
        return len(self.atoms.rho)


class Atoms(_Discrete):
    """Spectrum in the problem file."""

    law: Literal["atoms"] = "atoms"
    eigenvalues: Values = Field(description="eigenvalues, each >= 0, with mean 1, for instance [0.4, 1.6]")
    weights: Annotated[tuple[float, ...], Field(strict=False)] | None = Field(
        default=None, description="their shares in [0, 1], adding up to 1; left out: all alike"
    )
    teacher: Values | None = Field(
        default=None, description="t(rho)/T at each eigenvalue, each >= 0, with mean 1; left out: 1"
    )

    @after_fields
    def _lists_fit(self) -> None:
        count = len(self.eigenvalues)
        if self.weights is not None:
            check_probabilities(count, self.weights, "eigenvalue")
        check_spectrum(self.atoms.rho, self.atoms.weight)
        if self.teacher is not None:
            if len(self.teacher) != count:
                raise ValueError(f"{count} eigenvalues but {len(self.teacher)} of teacher; give one for each")
            if min(self.teacher) < 0:
                raise ValueError(f"teacher {min(self.teacher)} is negative, and no teacher has it; give numbers >= 0")
            mean = float(np.dot(self.atoms.weight, self.teacher))
            if abs(mean - 1.0) > 1e-6:  # it is 1 by the meaning of T
                raise ValueError(
                    f"teacher = {list(self.teacher)} has the mean {mean:.6g}, but T is the mean of t(rho), so that it "
                    "must be 1; divide by it"
                )

    @property
    def atoms(self) -> Nodes:
        """See `_Discrete.atoms`."""
        rho = np.array(self.eigenvalues, dtype=float)
        weight = np.full(len(rho), 1.0 / len(rho)) if self.weights is None else np.array(self.weights, dtype=float)
        teacher = np.ones(len(rho)) if self.teacher is None else np.array(self.teacher, dtype=float)
        return Nodes(rho, weight, teacher)

    def in_words(self, matrix: str, look_up: bool = True) -> str:
        """See `_Spectrum.in_words`."""
        uneven = ", of which the teacher prefers some" if self.teacher is not None else ""
        rho = self.eigenvalues
        return f"{len(rho)} eigenvalues of {matrix} from {min(rho):.4g} to {max(rho):.4g}{uneven}"


class SpectrumFile(FilePart, _Discrete):
    """Spectrum in a file, one eigenvalue for each dimension."""

    law: Literal["file"] = "file"
    path: str = Field(
        min_length=1,
        max_length=1000,
        description="a file of the eigenvalues, *.npy or *.csv, one per row; relative to the problem file",
    )

    @property
    def atoms(self) -> Nodes:
        """See `_Discrete.atoms`.

        Raises
        ------
        InputError
            If the file cannot be read, or does not hold eigenvalues with mean 1.
        """
        return self.read_once("spectrum.path", lambda _: self._eigenvalues())

    def in_words(self, matrix: str, look_up: bool = True) -> str:
        """See `_Spectrum.in_words`."""
        known = f"{len(self.atoms.rho)} eigenvalues" if look_up else "eigenvalues (not opened)"
        return f"{known} of {matrix} from {self.path}"

    def _eigenvalues(self) -> Nodes:
        values = read_samples(self.path, None)
        if values.shape[1] != 1:
            raise InputError(f"{self.path}: holds {values.shape[1]} columns; give one eigenvalue per row")
        rho = values[:, 0]
        weight = np.full(len(rho), 1.0 / len(rho))
        try:
            check_spectrum(rho, weight)
        except ValueError as error:
            raise InputError(f"{self.path}: {error}") from error
        return Nodes(rho, weight, np.ones(len(rho)))


Spectrum = Annotated[PowerLaw | MarchenkoPastur | Atoms | SpectrumFile, Field(discriminator="law")]


def check_spectrum(rho: FloatArray, weight: FloatArray) -> None:
    """Refuse negative eigenvalues, and those whose mean is not 1 but for chance."""
    if rho.min() < 0:
        raise ValueError(f"eigenvalue {rho.min():g} is negative, and no variance is; give numbers >= 0")
    mean = float(weight @ rho)
    if abs(mean - 1.0) > 0.05:  # that of N^2 random entries deviates by sqrt(2)/N, .02 at N = 100
        raise ValueError(
            f"eigenvalues have the mean {mean:.6g}, but it is 1, and other keys hold their scale; divide them by it"
        )


def _reduced(atoms: Nodes, count: int) -> Nodes:
    """Gauss nodes of a discrete measure, exact for polynomials in rho of degree 2 count - 1 (Lanczos)."""
    if len(atoms.rho) <= count or np.any(atoms.teacher != 1.0):
        return atoms
    rho, weight = _gauss(tuple(atoms.rho), tuple(atoms.weight), count)
    return Nodes(rho, weight, np.ones(len(rho)))


@lru_cache(maxsize=16)
def _gauss(rho: tuple[float, ...], weight: tuple[float, ...], count: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights by Lanczos steps with full orthogonalisation; fewer where the measure has fewer points."""
    x, start = np.array(rho), np.sqrt(np.array(weight))
    basis = [start / np.linalg.norm(start)]
    diagonal: list[float] = []
    off: list[float] = []
    while True:
        v = x * basis[-1]
        diagonal.append(float(v @ basis[-1]))
        for _ in range(2):  # once loses digits
            for known in basis:
                v = v - (v @ known) * known
        size = float(np.linalg.norm(v))
        if len(diagonal) == count or size < 1e-12 * (1.0 + x.max()):
            break
        off.append(size)
        basis.append(v / size)
    nodes, vectors = eigh_tridiagonal(np.array(diagonal), np.array(off))
    return np.maximum(nodes, 0.0), vectors[0] ** 2


def interpolated(nodes: FloatArray, values: FloatArray, x: FloatArray) -> FloatArray:
    """Values at x of the polynomial through values at nodes, by the barycentric formula.

    Parameters
    ----------
    nodes : ndarray, shape (nodes,)
    values : ndarray, shape (nodes, ...)
    x : ndarray, any shape

    Returns
    -------
    ndarray, shape (*x.shape, ...)
    """
    capacity = max(0.25 * float(np.ptp(nodes)), np.finfo(float).tiny)
    apart = (nodes[:, None] - nodes) / capacity
    np.fill_diagonal(apart, 1.0)
    weight = 1.0 / apart.prod(axis=1)
    away = x[..., None] - nodes
    there = away == 0.0
    share = np.where(there.any(axis=-1, keepdims=True), there, weight / np.where(there, 1.0, away))
    return np.asarray(np.tensordot(share / share.sum(axis=-1, keepdims=True), values, axes=1))
