"""Recorder of training code of one's own, which makes a result of SGD of its runs."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.arguments import as_array, as_whole
from meanfield.ensembles.own_runs import (
    KIND,
    SAMPLES,
    Arrays,
    check_complete,
    completed,
    dims_of,
    fitted,
    is_kept,
    measure_of,
    result_of,
    settings_of,
)
from meanfield.errors import InputError
from meanfield.problems.base import Problem, check_problem
from meanfield.problems.clock import Clock
from meanfield.problems.family import resolve
from meanfield.problems.in_time import InTime, made_of
from meanfield.problems.known_families import family_of
from meanfield.problems.problem_keys import with_values

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from meanfield.typing import FloatArray

MOST_SAMPLES = 2000
"""Number of inputs that are kept: they show a common radius, repeats, and laws of hidden variables."""

FIRST_STEPS = 16
"""Number of first steps whose mean |dw|^2 is held against the problem: by chance it is off by no factor sqrt(N)."""


class Recorder:
    """Recorder of runs in a training loop, which keeps what a result needs at the output times of a problem.

    Parameters
    ----------
    problem : Problem
        What the loop trains.
    features : array_like, shape (N, feature) or (replica, N, feature), optional
        U, where the data have features, or the teacher's weights.
    **constants
        Others that are the same at all times, by the names of results, such as `rho_of_coordinate`.

    Notes
    -----
    Arrays of PyTorch, JAX and NumPy are taken as they are; none of these packages is imported. A call compares k with
    the next number of steps after which anything is kept. Memory is taken by 2,000 inputs in single precision, the
    weights at the snapshots, `particles.snapshots`, and during the first 16 steps those before the last one.

    Examples
    --------
    >>> import meanfield, numpy as np
    >>> problem = meanfield.load_problem("data/problems/no_prior.toml")
    >>> U = np.ones((100, 1))
    >>> record = meanfield.Recorder(problem, features=U)
    >>> for k in range(2001):  # doctest: +SKIP
    ...     record(k, w)  # the weights after k steps, of shape (4, 100) of four runs at once
    ...     w = step(w)
    >>> record.result()["q"].shape  # doctest: +SKIP
    (4, 41, 1)
    """

    def __init__(self, problem: Problem, features: Any = None, **constants: Any) -> None:
        check_problem(problem)
        dims = dims_of(problem)
        self._weights = next((name for name in dims if is_kept(problem, name)), "weights")
        if self._weights not in dims:
            raise InputError("Recorder: results of this problem have no 'weights'; give arrays to meanfield.runs")
        if features is not None:
            known = [name for name, own in dims.items() if "time" not in own and len(own) == len(("run", "N", "u"))]
            if not known:
                raise InputError("features: the data of this problem have none; leave them out")
            constants[known[0]] = features
        self._problem: Any = problem
        self._constants = {
            name: as_array(_at_hand(each), name, "give an array of numbers") for name, each in constants.items()
        }
        self._dims = dims
        self._outputs: dict[int, int] = {}
        self._due: list[int] = []
        """Numbers of steps after which anything is kept, in order."""
        self._low, self._high = 0, 0.0
        """The last of them that was there, and the next one: between them nothing is kept."""
        self._runs: list[dict[int, Arrays]] = [{}]
        """What is kept of runs that are recorded at once, by the number of the output time."""
        self._first, self._count, self._several = 0, 0, False
        """Number of the first of the runs that are recorded now, how many these are, and whether they come at once."""
        self._before: FloatArray | None = None
        self._moves: list[float] = []
        """Weights of the first runs before the last of their first steps, and |dw|^2 of these."""
        self._sampled: frozenset[int] = frozenset()
        self._samples: list[NDArray[np.float32]] = []
        """Inputs of the first run, after the steps `sampled`."""

    def __call__(self, k: int, weights: Any, x: Any = None, **variables: Any) -> None:
        """Keep what is needed after k steps, if an output time is there; where k falls, other runs begin.

        Parameters
        ----------
        k : int
            Number of steps taken, 0 before the first.
        weights : array_like, shape (N, ...) or (replica, N, ...)
            After these steps, of one run or of several at once.
        x : array_like, shape (N,), (batch, N), or, of several runs, with the replica in front, optional
            Inputs of a step, of which a sample is kept, for `problem_from`.
        **variables
            Others by the names of results, such as side variables `v`, of the same runs.

        Raises
        ------
        InputError
            If something does not fit the problem.
        """
        if type(k) is int and self._low < k < self._high:
            return  # most calls end here, and cost a loop next to nothing
        number = as_whole(k, "k", "give the number of steps taken", least=0)
        if self._low < number < self._high:
            return
        if number in self._outputs or not self._outputs:
            self._keep(number, {self._weights: weights, **variables})
        if number <= FIRST_STEPS and number == len(self._moves) + (self._before is not None) and not self._first:
            self._follow(weights)
        if x is not None and not self._first and (number in self._sampled or not self._sampled):
            self._keep_inputs(number, x)
        place = bisect_right(self._due, number)
        self._low, self._high = self._due[place - 1], (*self._due[place:], math.inf)[0]

    def _keep(self, k: int, variables: Arrays) -> None:
        given = {name: as_array(_at_hand(each), name, "give numbers") for name, each in variables.items()}
        dims = self._dims
        own = [dim for dim in dims[self._weights] if dim not in ("replica", "time")]
        # a dim of a single entry may be left out
        of_one = [dim for dim in own if self._problem.fixed_dims.get(dim, 2) > 1 or dim == "coordinate"]
        if given[self._weights].ndim < len(of_one):
            raise InputError(
                f"weights: has the shape {given[self._weights].shape}; give ({', '.join(own)}), or several runs of it"
            )
        self._several = given[self._weights].ndim > len(of_one)
        if not self._several:
            given = {name: each[None] for name, each in given.items()}
        if not self._outputs:
            sizes = given[self._weights].shape[1:]
            place = (of_one if len(sizes) == len(of_one) else own).index("coordinate") if "coordinate" in own else 0
            self._begin(sizes[place])
        output = self._outputs.get(k)
        if output is None:
            return
        if any(output <= known for known in self._runs[-1]):
            if output != min(self._runs[0]):
                raise InputError(
                    f"k = {k}: has been there, so that other runs begin, and the first began at another k; give each "
                    "k once, and begin all runs at the same"
                )
            self._first += self._count
            self._runs.append({})
        count = len(given[self._weights])
        if self._runs[-1] and count != self._count:
            raise InputError(
                f"weights: are of {count} runs at k = {k}, and of {self._count} before; give the same runs at all k"
            )
        self._count = count
        given = {name: each[:, None] for name, each in given.items()}
        for name, each in self._constants.items():
            of_each = each.ndim == len(dims.get(name, ()))
            if of_each and self._first + count > len(each):
                raise InputError(
                    f"k = {k}: begins run {self._first + count}, and {name} is given of {len(each)}; raise k by 1 "
                    f"after each step, or give {name} of all runs"
                )
            given[name] = each[self._first : self._first + count] if of_each else each
        arrays, _ = fitted(self._problem, given)
        found = completed(arrays, self._measure(self._times[[output]], arrays), self._times[[output]])
        check_complete(self._problem, found)
        at_snapshot = output in self._snapshots
        self._runs[-1][output] = {
            name: each for name, each in found.items() if at_snapshot or not is_kept(self._problem, name)
        }

    def _follow(self, weights: Any) -> None:
        """Refuse first steps that are far longer or shorter than those of the problem, where their length is known."""
        given = np.array(as_array(_at_hand(weights), "weights", "give numbers"))
        if self._before is not None:
            self._moves.append(float(((given - self._before) ** 2).sum()))
        self._before = given
        if len(self._moves) < FIRST_STEPS:
            return
        self._before = None
        if not np.isfinite(self._moves).all():
            raise InputError(
                f"weights: are not finite within the first {FIRST_STEPS} steps; see what the loop divides by"
            )
        rests = np.array(self._moves) == 0.0
        if (rests[1:] != rests[:-1]).all():  # of rules that rest by chance, once in 2^15 loops at most
            raise InputError(
                f"weights: rest at every second of the first {FIRST_STEPS} steps; raise k by 1 for each step, and call "
                "the recorder once with it"
            )
        wanted = 0.0 if rests.any() else self._wanted()
        if not wanted:
            return
        square, root = float(np.mean(self._moves)) / self._count, self._N**0.5
        if not wanted / root < square < wanted * root:
            raise InputError(
                f"weights: the first {FIRST_STEPS} steps move them by |dw|^2 = {square:.3g} on average, and by "
                f"{wanted:.3g} in the problem; take steps of learning_rate/sqrt(N) along x where outputs are functions "
                "of w.x/sqrt(N), record each of them, and clip x if its tails are heavy"
            )

    def _wanted(self) -> float:
        """Mean of |dw|^2 of the first steps in the problem, with the numbers of each; 0 if it is not known."""
        address = family_of(self._problem).samples
        if not address:
            return 0.0

        def squared_step(problem: Problem) -> float:
            known = resolve(address)(problem).squared_step
            return 0.0 if known is None else float(known())

        in_time, at = InTime(self._problem), made_of(squared_step, id)
        try:
            return float(np.mean([at(in_time(k / self._N)) for k in range(FIRST_STEPS)]))
        except InputError:  # inputs are of another form
            return 0.0

    def _keep_inputs(self, k: int, given: Any) -> None:
        """Keep a sample of the inputs of the first run, evenly spread over the steps."""
        x = _at_hand(given)
        if not self._sampled:
            x = as_array(x, "x", "give an array of numbers")
            if SAMPLES not in family_of(self._problem).all_kinds[KIND].names:
                raise InputError("x: results of this problem keep no inputs; leave it out")
        kept = np.array(x[0] if self._several else x, dtype=np.float32, ndmin=2)
        if kept.ndim != 2 or kept.shape[1] != self._N:
            raise InputError(
                f"x: has the shape {kept.shape} for a run; give ({self._N:g},), or one row for each of a batch"
            )
        if not self._sampled:
            steps, batches = max(self._outputs), -(-MOST_SAMPLES // len(kept))
            self._sampled = frozenset(np.linspace(k, max(steps - 1, k), batches).astype(int).tolist())
            self._due = sorted({*self._due, *self._sampled})
        if k in self._sampled:
            self._samples.append(kept)

    def _begin(self, N: int) -> None:
        """Find out after how many steps there are output times."""
        self._snapshots = self._problem.particles.snapshot_index(self._problem.time)
        self._problem = with_values(self._problem, settings_of(self._problem, {"replica": 1, "coordinate": N}))
        self._measure, self._times = measure_of(self._problem), self._problem.time.outputs_at
        self._N = N = self._problem.labels.get("dimension")
        steps = np.rint(self._times * N) if N else Clock(self._problem).steps_at(self._times)
        self._outputs = {int(step): number for number, step in enumerate(steps)}
        self._due = sorted({*self._outputs, *range(FIRST_STEPS + 1)})

    def result(self) -> xr.Dataset:
        """Result of all runs, at the output times that all of them reached; see `runs`.

        Raises
        ------
        InputError
            If there are no runs, or they do not fit the problem.
        """
        outputs = sorted(set.intersection(*map(set, self._runs)))
        if not outputs:
            raise InputError("Recorder: no runs are recorded; call it with the number of steps taken and the weights")
        if outputs == [0]:
            raise InputError("Recorder: a run holds its start alone; raise k by 1 after each step")
        kept = [output for output in outputs if output in self._snapshots]
        dims = self._dims

        def joined(name: str) -> Any:
            if name not in dims:  # the same of all runs and times
                return self._runs[0][outputs[0]][name]
            at = kept if is_kept(self._problem, name) else outputs if "time" in dims[name] else outputs[:1]
            return np.concatenate([np.concatenate([run[o][name] for o in at], axis=1) for run in self._runs])

        arrays = {name: joined(name) for name in self._runs[0][kept[0] if kept else outputs[0]]}
        if self._samples:
            arrays[SAMPLES] = np.concatenate(self._samples)[:MOST_SAMPLES]
            if not np.isfinite(arrays[SAMPLES]).all():
                raise InputError("x: inputs of the first run are not all finite; leave out samples with gaps")
        problem = with_values(self._problem, settings_of(self._problem, {"replica": self._first + self._count}))
        return result_of(problem, self._times[outputs], arrays, self._times[kept])


def _at_hand(given: Any) -> Any:
    """Numbers of an array in the memory of this process; one of PyTorch may take part in gradients, or lie on a GPU."""
    for name in ("detach", "cpu"):
        given = getattr(given, name, lambda found=given: found)()
    return given
