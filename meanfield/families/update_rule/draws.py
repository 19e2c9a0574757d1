"""Draws: what one sample shows a rule, as a row of numbers that is Gaussian given its discrete variables.

A row has hidden variables, normal numbers, coins, and the fields of each input, features first and then students.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.laws import Laws, laws_at
from meanfield.ingredients.function_checks import why_not_compiled
from meanfield.numerics.compiled.row_functions import Argument, Bound, RowFunction, compile_rows
from meanfield.numerics.gaussian_moments.rules import Kinks
from meanfield.typing import FloatArray


class Noise(NamedTuple):
    """Gaussian noise of the inputs of a draw.

    Parameters
    ----------
    covariance : ndarray, shape (inputs, inputs)
        Per coordinate.
    projected : bool
        Whether it is orthogonal to the features.
    """

    covariance: FloatArray
    projected: bool = False


class Hidden(NamedTuple):
    """Law of the hidden variables, a mixture of Gaussians.

    Parameters
    ----------
    probability : ndarray, shape (components,)
    mean : ndarray, shape (components, variables)
    covariance : ndarray, shape (components, variables, variables)
    powers : ndarray, shape (variables,)
        Highest power of each whose average the mixture resolves; where it is finite, the law has tails.
    exact : bool
        Whether the mixture is the law itself, and not nodes for it.
    """

    probability: FloatArray
    mean: FloatArray
    covariance: FloatArray
    powers: FloatArray
    exact: bool = True


class Kept(NamedTuple):
    """Shares of coordinates that the masks of two inputs keep.

    Parameters
    ----------
    both : ndarray, shape (inputs, inputs)
        Kept in both.
    square : ndarray, shape (inputs, inputs)
        Kept in both, were their masks independent.
    covariance : ndarray, shape (inputs, inputs)
        The difference of the two.
    """

    both: FloatArray
    square: FloatArray
    covariance: FloatArray


@dataclass(frozen=True)
class Program:
    """Functions of a row, side by side.

    Parameters
    ----------
    functions : tuple of (str, Bound)
        What messages call each, and the function itself.
    width, constants : int
        Numbers of columns of a row, and of constants.
    kinks : Kinks
        Where they jump or bend.
    order : tuple of int
        Where each of their values goes, if not behind the one before it.
    """

    functions: tuple[tuple[str, Bound], ...]
    width: int
    constants: int
    kinks: Kinks
    order: tuple[int, ...] = ()

    @property
    def what(self) -> str:
        """What messages call it."""
        return self.functions[0][0]

    @cached_property
    def reads(self) -> tuple[int, ...]:
        """Columns of a row that it reads, increasing."""
        places = [place for _, each in self.functions for place in each.arguments if not place.constant]
        return tuple(sorted({column for place in places for column in place.columns}))

    @property
    def outputs(self) -> int:
        """Number of their values."""
        return sum(math.prod(each.shape) for _, each in self.functions)

    @cached_property
    def call(self) -> RowFunction:
        """All functions, compiled.

        Raises
        ------
        InputError
            If one of them does not compile.
        """
        try:
            return compile_rows(tuple(each for _, each in self.functions), self.width, self.constants, self.order)
        except Exception:  # numba raises many kinds at what it does not know
            for what, each in self.functions:
                try:
                    compile_rows((each,), self.width, self.constants)
                except Exception as error:
                    raise InputError(
                        f"{what}: does not compile ({why_not_compiled(error, each.function)}); use arithmetic, "
                        "functions of math and numpy, erf, erfc, expit and ndtr of scipy.special, and other functions "
                        "of its module"
                    ) from error
            raise


@dataclass(frozen=True)
class Draw:
    """One independent sample with its inputs x = Z d(c)/sqrt(N) + noise, and the functions that read it.

    A batch whose samples see each other is one sample that has the inputs of all of them.

    Parameters
    ----------
    names : mapping of str to Argument
        Places of what functions read by name, in a row or among the constants.
    hidden : Hidden
    normals : int
        Number of standard normal numbers.
    coins : tuple of float
        Probabilities with which each coin is 1, else 0.
    signal : ndarray, shape (inputs, vectors, variables)
        Coefficients D of the hidden variables: d = D c for each input.
    noise : tuple of Noise
    features : int
        Number of vectors that are not trained, the first.
    batch_size : int
    update : Program
        Values, in this order: F of each input (inputs, students), B where it is not 0, and H (side variables,).
    moves : tuple of (int, int)
        Vector and student of each of these values of B.
    observed : tuple of float
        Share of coordinates of each input that its mask keeps.
    masks : tuple of int
        Numbers of the masks of inputs, of which several may have one.
    scales_noise, scales_signal : tuple of int
        Hidden variables, of a few values, by whose product the noise of all inputs, or the signal, is multiplied.
    """

    names: Mapping[str, Argument]
    hidden: Hidden
    normals: int
    coins: tuple[float, ...]
    signal: FloatArray
    noise: tuple[Noise, ...]
    features: int
    batch_size: int
    update: Program
    observed: tuple[float, ...]
    masks: tuple[int, ...]
    moves: tuple[tuple[int, int], ...] = ()
    scales_noise: tuple[int, ...] = ()
    scales_signal: tuple[int, ...] = ()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of a row, for messages."""
        found = ["a hidden variable"] * self.width
        for name, place in self.names.items():
            for number, column in enumerate(() if place.constant else place.columns):
                index = np.unravel_index(number, place.shape) if place.shape else ()
                found[column] = name + "".join(f"[{i}]" for i in index)
        return tuple(found)

    @property
    def inputs(self) -> int:
        """L, the number of inputs."""
        return int(self.signal.shape[0])

    @property
    def vectors(self) -> int:
        """n, the number of features and students."""
        return int(self.signal.shape[1])

    @property
    def students(self) -> int:
        """K, the number of trained vectors."""
        return self.vectors - self.features

    @cached_property
    def first_coin(self) -> int:
        """Column of the first coin in a row."""
        return int(self.signal.shape[2]) + self.normals

    @cached_property
    def first_field(self) -> int:
        """Column of the first field in a row."""
        return self.first_coin + len(self.coins)

    @property
    def width(self) -> int:
        """Number of columns of a row."""
        return self.first_field + self.inputs * self.vectors

    def fields(self, number: int) -> slice:
        """Columns of the fields of an input."""
        first = self.first_field + number * self.vectors
        return slice(first, first + self.vectors)

    @cached_property
    def noise_covariance(self) -> FloatArray:
        """Covariance per coordinate of all noise, shape (inputs, inputs)."""
        return np.asarray(sum(each.covariance for each in self.noise))

    @cached_property
    def covariance(self) -> FloatArray:
        """C, that of the noise that is left by the mask, shape (inputs, inputs).

        That of a component of the law of a row has its factor `Laws.noise` besides.
        """
        return self.kept.both * self.noise_covariance

    @cached_property
    def kept(self) -> Kept:
        """Which coordinates masks keep."""
        p, same = np.array(self.observed), np.equal.outer(self.masks, self.masks)
        square = np.multiply.outer(p, p)
        return Kept(np.where(same, p, square), square, np.where(same, p * (1.0 - p), 0.0))

    @cached_property
    def noise_left(self) -> tuple[FloatArray, FloatArray]:
        """Covariances of the noise that masks leave, white, and beside the features, shape (inputs, inputs) both."""
        both, square, own = self.kept
        white = sum((own if each.projected else both) * each.covariance for each in self.noise)
        beside = sum(square * each.covariance * each.projected for each in self.noise)
        return np.asarray(white), np.asarray(beside)

    def signals(self, reads: Collection[int] | None = None) -> Laws:
        """Law of a row without noise, with the coefficients of vectors in the place of fields.

        Parameters
        ----------
        reads : collection of int, optional
            Columns that are read: coins that nobody reads make no component. By default all.
        """
        read = tuple(reads is None or self.first_coin + i in reads for i in range(len(self.coins)))
        if read not in self._signals:
            self._signals[read] = self._signals_with(read)
        return self._signals[read]

    @cached_property
    def _signals(self) -> dict[tuple[bool, ...], Laws]:
        """Laws that `signals` has made: equations ask for them in each step."""
        return {}

    def _signals_with(self, read: Sequence[bool]) -> Laws:
        """See `signals`."""
        hidden, variables = self.hidden, self.signal.shape[2]
        along = np.concatenate([p * D for p, D in zip(self.observed, self.signal, strict=True)])
        fields, first = slice(self.first_field, self.width), self.first_coin
        outcomes, chances = self._coins(read)
        signal = hidden.mean[:, list(self.scales_signal)].prod(axis=1)
        noise = hidden.mean[:, list(self.scales_noise)].prod(axis=1) ** 2
        mean = np.zeros((len(hidden.probability), len(chances), self.width))
        mean[:, :, :variables] = hidden.mean[:, None]
        mean[:, :, first : self.first_field] = outcomes
        mean[:, :, fields] = (signal[:, None] * hidden.mean @ along.T)[:, None]
        covariance = np.zeros((len(hidden.probability), self.width, self.width))
        covariance[:, :variables, :variables] = hidden.covariance
        covariance[:, range(variables, first), range(variables, first)] = 1.0
        covariance[:, fields, :variables] = along @ (signal[:, None, None] * hidden.covariance)
        covariance[:, :variables, fields] = covariance[:, fields, :variables].swapaxes(1, 2)
        covariance[:, fields, fields] = along @ (signal[:, None, None] ** 2 * hidden.covariance) @ along.T
        return Laws(
            np.multiply.outer(hidden.probability, chances).ravel(),
            mean.reshape(-1, self.width),
            *(np.repeat(each, len(chances), axis=0) for each in (covariance, signal, noise)),
        )

    def laws(self, G: FloatArray, reads: Collection[int] | None = None, weighted: FloatArray | None = None) -> Laws:
        """Law of a row at a Gram matrix (update_rules.md, eq-rule-fields).

        Parameters
        ----------
        G : ndarray, shape (vectors, vectors)
        reads : collection of int, optional
            See `signals`.
        weighted : ndarray, shape (vectors, vectors), optional
            Gram matrix weighted with the variances of the noise of coordinates, where these differ.
        """
        signals, (white, beside) = self.signals(reads), self.noise_left
        spread, rest = G if weighted is None else weighted, np.zeros_like(G)
        if beside.any():
            turned = self.beside_features(G)
            rest = turned.T @ spread @ turned
        mean, covariance = laws_at(signals.mean, signals.covariance, signals.noise, white, beside, G, spread, rest)
        return signals._replace(mean=mean, covariance=covariance)

    def beside_features(self, G: FloatArray) -> FloatArray:
        """Coefficients of vectors without their part along features, 0 for these, shape (vectors, vectors)."""
        M = self.features
        found = np.eye(len(G))
        found[:M, M:] = -np.linalg.solve(G[:M, :M], G[:M, M:])
        found[:M, :M] = 0.0
        return found

    def _coins(self, read: Sequence[bool]) -> tuple[FloatArray, FloatArray]:
        """Outcomes of the coins that are read, and their probabilities; others show 0."""
        choices = [
            ((0.0, 1.0 - p), (1.0, p)) if seen else ((0.0, 1.0),) for p, seen in zip(self.coins, read, strict=True)
        ]
        outcomes = list(itertools.product(*choices))
        values = np.array([[value for value, _ in each] for each in outcomes]).reshape(len(outcomes), len(self.coins))
        return values, np.array([np.prod([p for _, p in each]) for each in outcomes])
