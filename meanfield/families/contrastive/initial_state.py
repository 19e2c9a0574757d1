"""Start from what is there: a result at one of its times, or weights of a network and features beside each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from pydantic import Field, field_validator

from meanfield.errors import InputError
from meanfield.ingredients.file_part import FilePart, absolute
from meanfield.problems.base import same_times
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.families.contrastive.problem import Problem
    from meanfield.mckean_vlasov.weight_law import WeightLaw

NORM_ROUNDING = 1e-3
"""Largest deviation of |w|^2/N and U^T U/N from 1: single precision, and no more."""


class State(NamedTuple):
    """What a file holds of a start.

    Parameters
    ----------
    q : ndarray, shape (runs, d1)
        Overlaps; one run for those of a limit.
    weights : ndarray, shape (runs, N), optional
    U : ndarray, shape (runs, N, d1), optional
    law : WeightLaw, optional
        Of weights given feature coordinates.
    """

    q: FloatArray
    weights: FloatArray | None = None
    U: FloatArray | None = None
    law: WeightLaw | None = None

    @property
    def overlap(self) -> FloatArray:
        """Mean overlap of all runs, shape (d1,)."""
        return np.asarray(self.q.mean(axis=0))


class InitialState(FilePart):
    """Start of weights from a file: `from` names a result (.nc), or arrays `weights` and `U` (.npz)."""

    vars()["from"] = Field(description="a result such as 'density.nc', or arrays 'weights' and 'U' in a file .npz")
    __annotations__["from"] = "str"  # a word of Python, which no field can be named with otherwise

    time: float | None = Field(default=None, ge=0, description="time t of a result; its last one if nothing is said")
    smoothing: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="width in the normal score by which quantiles of n single weights are smoothed for a density; "
        "n^(-1/5)/2 if nothing is said",
    )

    @field_validator("from")
    @classmethod
    def _find_source(cls, path: str, info: Any) -> str:
        return absolute(path, info)

    @property
    def path(self) -> str:
        """Path of the file."""
        return str(getattr(self, "from"))

    @property
    def paths(self) -> dict[str, str]:
        """See `FilePart.paths`."""
        return {"from": self.path}

    @property
    def asked(self) -> Any:
        """See `FilePart.asked`: what is read does not depend on the smoothing."""
        return self.path, self.time

    @property
    def atoms(self) -> State:
        """State that the file holds.

        Raises
        ------
        InputError
            If the file cannot be read, or holds no start.
        """
        return self.read_once("initial.from", lambda _: _read(Path(self.path), self.time))

    def law_at(self, nodes: tuple[FloatArray, FloatArray], kinks: tuple[float, ...]) -> WeightLaw | None:
        """Law of weights given feature coordinates at the start; None where only overlaps are known.

        Parameters
        ----------
        nodes : tuple of ndarray
            Nodes in u, shape (nodes, d1), and their weights, where the law of single weights is wanted.
        kinks : tuple of float
            Those of the prior, where a density has corners.
        """
        state = self.atoms
        if state.weights is None or state.U is None:
            return state.law and replace(state.law, kinks=kinks)
        from meanfield.mckean_vlasov.weight_law import law_of_samples  # reading a problem file needs no SciPy

        w = state.weights.ravel()
        # of best order for smooth laws, and narrow enough for those of sparse weights
        smoothing = 0.5 * len(w) ** -0.2 if self.smoothing is None else self.smoothing
        laws = [law_of_samples(w, state.U.reshape(len(w), -1), nodes, width) for width in (smoothing, 2.0 * smoothing)]
        return replace(laws[0], errors={"P_error": np.array(laws[0].distance(laws[1]))})

    @property
    def in_words(self) -> str:
        """Where the weights start."""
        at = "" if self.time is None else f" at t = {self.time:g}"
        return f"from {Path(self.path).name}{at}"


def _read(path: Path, time: float | None) -> State:
    if path.suffix == ".npz":
        if time is not None:
            raise InputError(f"{path}: arrays have no time; remove initial.time")
        return _of_arrays(path)
    from meanfield.results.files import load  # which knows problems

    return _of_result(load(path), path, time)


def _of_arrays(path: Path) -> State:
    try:
        with np.load(path, allow_pickle=False) as file:
            given = {name: np.asarray(file[name], dtype=float) for name in ("weights", "U") if name in file}
    except (OSError, ValueError, TypeError, EOFError, BadZipFile) as error:
        raise InputError(f"{path}: cannot be read ({error}); write it by numpy.savez(path, weights=w, U=U)") from error
    if set(given) != {"weights", "U"}:
        raise InputError(f"{path}: holds no 'weights' and 'U'; write it by numpy.savez(path, weights=w, U=U)")
    weights, U = np.atleast_2d(given["weights"]), given["U"]
    U = U[:, None] if U.ndim == 1 else U
    if weights.ndim != 2 or U.shape[-2:-1] != weights.shape[-1:]:
        raise InputError(
            f"{path}: weights of shape {given['weights'].shape} and U of shape {given['U'].shape}; give (N,) or "
            "(runs, N), and (N, features) or (runs, N, features)"
        )
    return _checked(weights, np.broadcast_to(U, (len(weights), *U.shape[-2:])), path)


def _checked(weights: FloatArray, U: FloatArray, path: Path) -> State:
    """State of weights and features on their spheres."""
    N = weights.shape[1]
    if not (np.isfinite(weights).all() and np.isfinite(U).all()):
        raise InputError(f"{path}: weights or U hold numbers that are not finite; give those of a run that goes on")
    norm, gram = np.square(weights).sum(axis=1) / N, np.einsum("rnk,rnj->rkj", U, U) / N
    for name, deviation in (("|w|^2/N", norm - 1.0), ("U^T U/N", gram - np.eye(U.shape[2]))):
        if np.abs(deviation).max() > NORM_ROUNDING:
            raise InputError(
                f"{path}: {name} deviates from 1 by {np.abs(deviation).max():.3g}; weights and features have the "
                "length sqrt(N), and features are orthogonal: rescale them"
            )
    weights = weights / np.sqrt(norm)[:, None]
    return State(np.einsum("rnk,rn->rk", U, weights) / N, weights, U)


def _of_result(result: xr.Dataset, path: Path, time: float | None) -> State:
    from meanfield.families.contrastive.problem import Problem
    from meanfield.problems.problem_keys import at_time
    from meanfield.results.result import Result

    problem = Result.of(result).problem
    if not isinstance(problem, Problem) or "q" not in result or "channel" in result.dims:
        raise InputError(f"{path}: holds no overlaps of one channel of the family 'contrastive'; name such a result")
    axis = "snapshot_time" if "weights" in result else "time"
    if axis not in result.dims:
        raise InputError(f"{path}: is not in time; name a density, order parameters or runs of SGD")
    times = result[axis].values
    k = len(times) - 1 if time is None else int(same_times(times, np.array([time]))[0])
    if k < 0:
        what = "snapshots" if axis == "snapshot_time" else "output times"
        raise InputError(
            f"{path}: initial.time = {time:g} is none of its {what}, {', '.join(f'{t:g}' for t in times[:8])}"
            f"{', ...' if len(times) > 8 else ''}; name one of them"
        )
    at = result.isel({axis: k})
    if axis == "snapshot_time":
        weights = at["weights"].transpose("replica", ...).values.astype(float)
        return _checked(weights, at["U"].transpose("replica", ..., "feature").values.astype(float), path)
    q = at["q"].transpose(..., "feature").values.reshape(-1, result.sizes["feature"])
    if not np.isfinite(q).all():
        raise InputError(f"{path}: was not computed until initial.time = {times[k]:g}; name an earlier time")
    return State(q, law=_law(at, at_time(problem, float(times[k]))) if "P" in at else None)


def _law(at: xr.Dataset, problem: Problem) -> WeightLaw:
    """Law of a density at one time; its errors include what reading it off its cells adds to q and r."""
    from meanfield.mckean_vlasov.cells import edges_of, nodes_of  # reading a problem file needs no SciPy
    from meanfield.mckean_vlasov.weight_law import WeightLaw

    errors = {name: at[name].values for name in ("q_error", "r_error", "P_error") if name in at}
    law = WeightLaw(*nodes_of(at), edges_of(at), at["P"].transpose(..., "w").values, {}, problem.prior.functions.kinks)
    q, _ = law.moments
    added = {
        "q_error": np.abs(q - at["q"].values),
        "r_error": abs(law.mean(lambda w: w * problem.prior.force(w)) - float(at["r"])),
    }
    return replace(law, errors={name: error + added.get(name, 0.0) for name, error in errors.items()})
