"""Problems from samples of data and weights: estimates of what a problem needs, and what in it does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.arguments import as_array, as_number, as_whole
from meanfield.errors import InputError
from meanfield.problems.base import Problem, check_problem
from meanfield.problems.family import resolve
from meanfield.problems.known_families import family_of
from meanfield.problems.problem_keys import value_of, with_values
from meanfield.samples.assumed import Assumed
from meanfield.samples.estimates import VARIANCE, Measured, Number, laws, leading, spectrum_of, start_of
from meanfield.samples.evidence import Evidence, taken_apart
from meanfield.samples.findings import Finding, findings_of
from meanfield.samples.statistics import checked_samples, checked_vectors
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class DataReport:
    """What samples say about a problem.

    Parameters
    ----------
    numbers : mapping of str to (float, float)
        Estimates and their standard errors.
    findings : tuple of Finding
        Assumptions that samples contradict beyond chance; `matters` says whether by more than single runs scatter.
    limits : str
        What so few samples cannot show, in words.
    features : ndarray, shape (N, features)
        Features that were given or found.
    eigenvalues : ndarray
        Of the covariance of what is left beside features, the largest first; white samples have them in `edges`.
    edges : (float, float)
    """

    numbers: Mapping[str, Number]
    findings: tuple[Finding, ...]
    limits: str
    features: FloatArray
    eigenvalues: FloatArray
    edges: tuple[float, float]
    _like: Problem
    _keys: Mapping[str, Any]

    @property
    def problem(self) -> Any:
        """The problem with what was estimated.

        Raises
        ------
        InputError
            If fewer features are found than the problem has.
        """
        wanted = len(getattr(self._like, "features", ()))
        if self.features.shape[1] < wanted:
            raise InputError(
                f"features: {self.features.shape[1]} of {wanted} are found ({self.limits}); give them, or more samples"
            )
        return with_values(self._like, self._keys)

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of the assumptions that do not hold, by more than what does not matter at this N."""
        return tuple(each.name for each in self.findings if each.matters)

    def __str__(self) -> str:
        """All of it in words."""
        lines = [f"{key} = {value:.4g} +- {error:.2g}" for key, (value, error) in self.numbers.items()]
        if len(self.eigenvalues):
            low, high = self.eigenvalues[[-1, 0]]
            lines.append(
                f"eigenvalues beside features from {low:.3g} to {high:.3g}; of white samples from "
                f"{self.edges[0]:.3g} to {self.edges[1]:.3g}"
            )
        lines += [str(each) for each in self.findings] or ["nothing contradicts the problem"]
        return "\n".join([*lines, *([self.limits] if self.limits else [])])


def problem_from(
    data: Any,
    weights: Any = None,
    features: Any = None,
    *,
    like: Problem,
    labels: Any = None,
    label_noise: str = "",
    uses: float | None = None,
    seed: int = 0,
) -> DataReport:
    """Estimate what a problem needs from samples, and say which of its assumptions they contradict.

    Parameters
    ----------
    data : array_like, shape (samples, N)
        Inputs as training takes them, at least 100.
    weights : array_like, shape (N,) or (N, students), optional
        At the start of training; overlaps at the start are left as they are without them.
    features : array_like, shape (N, features), optional
        U; without it, directions of the largest variance are found in one half of the samples, and their hidden
        variables are measured in the other.
    like : Problem
        What is trained, with all that samples do not tell: network, learning rate, batch size, prior, time.
    labels : array_like, shape (samples,), optional
    label_noise : str
        Key of the standard deviation of label noise in the problem, such as `model.rule_parameters.sigma`.
    uses : float, optional
        How often training uses each sample; by default repeats among the samples tell.
    seed : int
        Of random directions and halves.

    Returns
    -------
    DataReport
        `problem`, `numbers` with standard errors, and `findings`; `str` has them in words.

    Raises
    ------
    InputError
        If shapes do not fit, or the family has no problems from samples.

    Notes
    -----
    All quantities are dimensionless. Of 300 true cases each, 1,500 samples at N = 100, none with Gaussian inputs was
    contradicted, and 1 with independent entries of Student's law with five degrees of freedom was.

    Examples
    --------
    >>> import meanfield, numpy as np
    >>> rng, like = np.random.default_rng(0), meanfield.load_problem("data/problems/no_prior.toml")
    >>> U = np.ones((200, 1))
    >>> x = rng.standard_normal((1000, 200))
    >>> meanfield.problem_from(x, features=U, like=like).broken
    ('hidden law',)
    """
    assumed = assumed_of(like)
    x = checked_samples(data, "data")
    n, N = x.shape
    rng = np.random.default_rng(as_whole(seed, "seed", "give a whole number from 0 on", least=0))
    known = None if features is None else checked_vectors(features, "features", N)
    w = None if weights is None else checked_vectors(weights, "weights", N)
    y = None if labels is None else as_array(labels, "labels", f"give {n} numbers").ravel()
    if y is not None and (len(y) != n or not np.isfinite(y).all()):
        raise InputError(f"labels: have the shape {y.shape}; give {n} finite numbers, one for each sample")
    if label_noise and y is None:
        raise InputError(f"label_noise = '{label_noise}': there are no labels; give labels=..., one for each sample")
    students = like.fixed_dims.get("student", 1)
    if w is not None and w.shape[1] != students:
        raise InputError(f"weights: have {w.shape[1]} columns, and the problem trains {students}; give one for each")
    wanted = len(getattr(like, "features", ()))
    if known is not None and known.shape[1] != wanted:
        raise InputError(f"features: have {known.shape[1]} columns, and the problem has {wanted}; give one for each")
    if uses is not None:
        uses = as_number(uses, "uses", "give how often each sample is used, 1 for fresh ones", least=1.0)
        uses = uses if uses > 1.0 else 0.0
    if known is None:
        half = np.split(rng.permutation(n), [n // 2])
        U_half, of_half = leading(x[half[0]], wanted)
        U, cosine = leading(x, U_half.shape[1])
        measured = Measured(x[half[1]] @ U_half / np.sqrt(N), of_half, assumed)
    else:
        U, cosine = known, np.ones(wanted)
        measured = Measured(taken_apart(x, U)[0], cosine, assumed)
    e = Evidence(
        x,
        U,
        assumed,
        seen=assumed.samples_per_time * N * like.time.stop,  # type: ignore[attr-defined]
        rng=rng,
        path=() if w is None else ((0.0, w),),
        all_labels=y,
        label_noise=float(value_of(like, label_noise)) ** 2 if label_noise else None,
        known_uses=uses,
        features_given=known is not None,
    )
    findings = findings_of(e)
    numbers, keys = laws(measured, like)
    keys["particles.dimension"] = N
    eigenvalues, edges = np.empty(0), (0.0, 0.0)
    if e.is_enough:
        numbers[VARIANCE] = e.variance
        keys |= {assumed.noise_key: e.variance[0]} if assumed.noise_key else {}
        eigenvalues, edges = spectrum_of(e)
    if w is not None:
        more, others = start_of(w, U, cosine, assumed)
        numbers, keys = numbers | more, keys | others
    if label_noise and e.is_enough:
        variance, error = e.unexplained
        keys[label_noise] = variance**0.5
        numbers[label_noise] = variance**0.5, 0.5 * error / max(variance, 1e-300) ** 0.5
    return DataReport(numbers, findings, e.limits, U, eigenvalues, edges, like, keys)


def assumed_of(problem: Problem) -> Assumed:
    """What a problem assumes of its inputs.

    Raises
    ------
    InputError
        If its family does not say it.
    """
    check_problem(problem)
    address = family_of(problem).samples
    if not address:
        raise InputError(
            f"problem_from: the family '{family_of(problem).name}' makes no problems of samples; for hidden manifolds "
            "there is meanfield.hidden_manifold.examine_samples"
        )
    found: Assumed = resolve(address)(problem)
    return found
