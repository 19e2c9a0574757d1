"""Methods by name, and the verbs of those that several families have: a problem goes in, a Dataset comes out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest
from meanfield.problems.family import resolve
from meanfield.problems.known_families import family_of

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.ensembles.arrays import Record
    from meanfield.problems.base import Problem


def solve(problem: Problem, method: str, **options: Any) -> xr.Dataset:
    """Solve a problem of any family by one of the methods that the family declares.

    Parameters
    ----------
    problem : Problem
        From `meanfield.load_problem`.
    method : str
        Such as `density`, `order_parameters` or `particles`; `family_of(problem).methods` has them all.
    **options
        What the method takes besides the problem, such as `workers` or `record` for SGD.

    Returns
    -------
    xarray.Dataset
        Of one of the kinds that the method declares.

    Raises
    ------
    InputError
        If the family has no such method, the method does not apply to the problem, or takes no such option.

    Examples
    --------
    >>> import meanfield
    >>> problem = meanfield.load_problem("data/problems/no_prior.toml")
    >>> meanfield.solve(problem, "order_parameters")["q"].shape
    (41, 1)
    """
    chosen = family_of(problem).method(method)
    _check_options(method, resolve(chosen.solve), options)
    result: xr.Dataset = chosen(problem, **options)
    return result


def solve_density(problem: Problem, **options: Any) -> xr.Dataset:
    """Density of weights in time, in the limit: the method `density` of the family.

    Parameters
    ----------
    problem : Problem
        Of any family.
    **options
        What the method of the family takes: `backend="fipy"` has a contrastive problem solved on fixed cells by FiPy.

    Returns
    -------
    xarray.Dataset
        The density, the order parameters and their errors, as far as they are estimated. The attribute `status` is
        `complete`, `interrupted` or `failed: ...`; output times that were not reached are NaN. The attribute `warning`
        says what is to be known of the numbers.

    Raises
    ------
    InputError
        If the family has no such method, or it does not apply to the problem; `meanfield.explain` says which ones do.

    Notes
    -----
    - `contrastive`: `P`, the density of weights and feature coordinates, from the McKean-Vlasov equation with
      self-consistent `q` and `r`, for one to three features and any prior; of several channels the density of each.
    - `hidden_manifold`: `P`, that of the student's weights along eigenvectors of the features, from the order
      parameters.
    - `alpha_contrastive`: that of filters on the circle or the sphere, in the limit of infinitely many.
    - `latent_tree`: that of infinitely many nodes for each latent below the root.

    The settings are keys of the problem file, such as `density.tolerance`. All quantities are dimensionless.
    """
    return _solve_by_verb(problem, "density", **options)


def solve_order_parameters(problem: Problem) -> xr.Dataset:
    """Order parameters in time from reduced differential equations: the method `order_parameters` of the family.

    Parameters
    ----------
    problem : Problem
        Of a family with such equations.

    Returns
    -------
    xarray.Dataset
        The order parameters, and N times their covariance over runs of SGD where it is known. The attribute `status` is
        `complete`, `interrupted` or `failed: ...`; output times that were not reached are NaN.

    Raises
    ------
    InputError
        If the family has no such method, or no equations close for the problem.

    Notes
    -----
    - `contrastive`: overlaps `q` with features, and of several channels their overlaps `M`; for priors with linear phi
      (none, l2) and a start that is not random.
    - `hidden_manifold`: `Q`, `R` and the generalisation error, for inputs whose means have one length.
    - `update_rule`: `R`, `Q`, side variables and observables with their errors, for priors with linear phi.

    All quantities are dimensionless.
    """
    return _solve_by_verb(problem, "order_parameters")


def solve_population(problem: Problem) -> xr.Dataset:
    """Flow of all weights of a finite network on the exact mean of its loss: the method `population` of the family.

    Parameters
    ----------
    problem : Problem
        Of a family with exact averages, `alpha_contrastive` or `latent_tree`; `population.tolerance` is the error of a
        step.

    Returns
    -------
    xarray.Dataset
        Loss or energy, weights, and what the family measures of them, at the output times. What was not reached is NaN.

    Raises
    ------
    InputError
        If the family has no such method, or there are no exact averages for the problem.
    """
    return _solve_by_verb(problem, "population")


def simulate_sgd(problem: Problem, workers: int | None = None, record: Record | None = None) -> xr.Dataset:
    """Replicas of SGD at finite N: the method `particles` of the family.

    Parameters
    ----------
    problem : Problem
        Of any family. Steps, N, replicas, the seed and what is kept are keys of its table `particles`.
    workers : int, optional
        Threads; by default one per core that this process may use. The numbers do not depend on it: replica i draws
        from streams of its own.
    record : Record, optional
        Where results and states go meanwhile: a `meanfield.Checkpoint` for runs that shall survive a kill, or whose
        weights do not fit into memory. By default memory.

    Returns
    -------
    xarray.Dataset
        What the family measures at every output time, along `replica`, and weights at the snapshots if there are any;
        with `particles.record = 'statistics'` statistics over replicas instead. The attribute `status` is `complete`,
        `interrupted` or `failed: ...`; what was not reached is NaN.

    Raises
    ------
    InputError
        If the family cannot give what is asked for, or the run does not fit into the free memory or into
        `particles.longest_days`.
    """
    options = {"workers": workers, "record": record}
    return _solve_by_verb(problem, "particles", **{name: given for name, given in options.items() if given is not None})


def find_stationary_states(problem: Problem) -> xr.Dataset:
    """Stationary states of the density or the network, and which are stable: the method `stationary` of the family.

    Parameters
    ----------
    problem : Problem
        Of the family `contrastive`, with one to three features and any number of channels under a linear prior or up
        to two under another, of the family `update_rule`, with one student and one to three features, of the family
        `latent_tree`, or of one of your own with such a method; the start does not matter. Filters at rest are
        `meanfield.alpha_contrastive.find_critical_points`.

    Returns
    -------
    xarray.Dataset
        Along `state`: order parameters, density, growth rate and `stability`; of `latent_tree` weights, loss, growth
        rates and the share of random networks that come to it. The attribute `warning` says where some may be missing,
        and why.

    Raises
    ------
    InputError
        If the family has no such method, or it does not apply to the problem.

    Notes
    -----
    The density of one channel, or of one student, is explicit for given q, E[w^2] and G, so that few equations remain;
    they are solved from many starts until new ones bring nothing new. That of two channels is solved on cells. All
    quantities are dimensionless. Source: theory.md, section 6; update_rules.md, section 5.
    """
    return _solve_by_verb(problem, "stationary")


def find_fixed_points(problem: Problem) -> xr.Dataset:
    """Fixed points of the order parameters, and which are stable: the method `fixed_points` of the family.

    Parameters
    ----------
    problem : Problem
        Of a family with closed equations of order parameters, `contrastive`, `hidden_manifold` or `update_rule`; the
        start does not matter to `contrastive` ones.

    Returns
    -------
    xarray.Dataset
        Along `state`: order parameters, rates and kinds.

    Raises
    ------
    InputError
        If the family has no such method, or no equations close for the problem.
    """
    return _solve_by_verb(problem, "fixed_points")


VERBS: dict[str, Callable[..., xr.Dataset]] = {
    "density": solve_density,
    "order_parameters": solve_order_parameters,
    "population": solve_population,
    "particles": simulate_sgd,
    "stationary": find_stationary_states,
    "fixed_points": find_fixed_points,
}
"""Verbs by the names of the methods that they run."""


def _solve_by_verb(problem: Problem, method: str, **options: Any) -> xr.Dataset:
    """Solve a problem by a method that its family need not have."""
    family = family_of(problem)
    if method not in family.methods and method not in family.lacking:
        raise InputError(
            f"{VERBS[method].__name__}: the family '{family.name}' has no method '{method}'; give meanfield.solve one "
            f"of {', '.join(sorted(family.methods))}"
        )
    return solve(problem, method, **options)


def _check_options(method: str, function: Callable[..., Any], options: Iterable[str]) -> None:
    """Refuse options that a method does not take; its settings are keys of the problem file."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters]
    for name in options:
        if name not in known:
            hint = nearest(name, known) if known else "it takes none"
            raise InputError(f"{name}: no option of method '{method}'; {hint}; settings are keys of the problem file")
