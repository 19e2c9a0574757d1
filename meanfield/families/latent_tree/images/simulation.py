"""Training on images: results that are kept, the memory of a step, the steps of replicas, and what a run costs."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import count, pairwise
from operator import methodcaller

import numpy as np

from meanfield.ensembles.arrays import Record
from meanfield.ensembles.averages import check_rates, clocked
from meanfield.ensembles.ensemble import run_ensemble
from meanfield.ensembles.simulation import Simulation, batched
from meanfield.errors import InputError
from meanfield.explanation.prediction import Prediction, seconds_of
from meanfield.explanation.replicas import cost_of_replicas, prediction_of_replicas
from meanfield.families.latent_tree.images.convolutional import ConvolutionalReplicas
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.families.latent_tree.images.replicas import ImageReplicas, has_probe
from meanfield.networks.convolutional import check_torch
from meanfield.problems.base import check_problem
from meanfield.problems.clock import Clock
from meanfield.problems.in_time import InTime
from meanfield.problems.problem_keys import with_value, with_values
from meanfield.process.cores import available_cores
from meanfield.results.solved import Solved, solver


@solver
def train_on_images(problem: ImageProblem, workers: int | None = None, record: Record | None = None) -> Solved:
    """Replicas of training on batches of fresh views, from the same weights or each from its own.

    Parameters
    ----------
    workers, record : optional
        See `meanfield.simulate_sgd`.

    Returns
    -------
    xarray.Dataset
        `sampled_loss`, and `probe_accuracy` where images have classes, at the output times, `layer_weights` at
        snapshots; with `training.average_rate` `sampled_loss_average` and `probe_accuracy_average` of averaged weights;
        with `particles.record = 'statistics'` statistics over replicas instead. Output time t is step
        round(t/eta). What was not reached is NaN.

    Raises
    ------
    InputError
        If there are convolutions without PyTorch, or the run does not fit; see `meanfield.simulate_sgd`.
    """
    replicas = ImageReplicas if problem.network.convolution is None else ConvolutionalReplicas
    return run_ensemble(simulation_of(problem), partial(clocked, problem, replicas), workers, record)


def simulation_of(problem: ImageProblem) -> Simulation:
    """Simulation that a problem describes."""
    check_problem(problem, ImageProblem)
    check_rates(problem.training, problem.steps_per_time)
    check_statistics(problem)
    rows: dict[str, tuple[int, ...]] = {"sampled_loss": ()}
    if has_probe(problem):
        rows["probe_accuracy"] = ()
    if problem.training.average_rate is not None:
        rows |= {f"{name}_average": shape for name, shape in rows.items()}
    weights, label = _weights(problem), "plain"
    if problem.network.convolution is not None:
        check_torch()
        label = f"torch {version('torch')}"  # another version takes sums in another order
    return batched(
        problem,
        numbers_of_a_batch(_largest(problem)),
        together=2**17,
        besides=weights,
        rows=rows,
        snapshots={"layer_weights": (weights,)},
        label=label,
        quantiles=("sampled_loss",),
        remedy=problem.network.remedy,
        size="network.widths",
    )


def check_statistics(problem: ImageProblem) -> None:
    """Refuse averages of weights whose channels are normalised by statistics that belong to the trained ones."""
    a, convolution = problem.training.average_rate, problem.network.convolution
    if a is not None and convolution is not None and convolution.batch_norm:
        raise InputError(
            f"training.average_rate = {a:g} with network.convolution.batch_norm = true: statistics of batches are of "
            "the trained weights, and averages have none; set batch_norm to false, or remove average_rate"
        )


def _largest(problem: ImageProblem) -> ImageProblem:
    """The problem at the time of its largest batches."""
    return max(InTime(problem).extremes(problem.time.stop).values(), key=numbers_of_a_batch)


def numbers_of_a_batch(problem: ImageProblem) -> int:
    """Number of inputs and activations of all views of a batch, as far as they are doubles."""
    convolutional = problem.convolutional
    # a convolutional one keeps as many doubles of each value
    each = sum(problem.widths) if convolutional is None else 0.15 * convolutional.activations
    return int(problem.training.batch_size * problem.loss.views * each)


def _weights(problem: ImageProblem) -> int:
    """Number of all numbers that are trained."""
    convolutional = problem.convolutional
    if convolutional is not None:
        return convolutional.numbers
    return sum((below + problem.network.bias) * above for below, above in pairwise(problem.widths))


TRIAL = 1 << 19
"""Largest number of inputs and activations of the batches of a trial; fewer of them stay in the cache."""


def particles(problem: ImageProblem) -> Prediction:
    """Cost of training, from steps with fewer samples, through narrower layers; see `cost_of_replicas`."""
    simulation = simulation_of(problem)
    steps = float(Clock(problem).steps_at(np.array([problem.time.stop]))[0])
    problem = _largest(problem)
    batch, batches = problem.training.batch_size, problem.particles.loss_batches
    # The weights of layers of 512 nodes take milliseconds, and so does a probe of as many features.
    trial = with_value(problem, "network.widths", tuple(min(width, 512) for width in problem.network.widths))
    each = numbers_of_a_batch(trial)
    fewer = min(batch, max(2, TRIAL * batch // each))  # losses take negatives from a batch
    scored = min(batches, TRIAL * batch // (each * fewer) + 1)
    trial = with_values(trial, {"training.batch_size": fewer, "particles.loss_batches": scored})
    if problem.network.convolution is not None:
        return prediction_of_replicas(simulation, partial(_seconds, problem, trial, steps), ", ".join(simulation.rows))
    step = batch * _weights(problem) / (fewer * _weights(trial))
    replicas, probes = partial(ImageReplicas, trial), methodcaller("probes") if has_probe(trial) else None
    found = cost_of_replicas(simulation, replicas, step, step * batches / scored, probes)
    # Arrays of more than 32 MB are mapped anew each time: 5e-8 seconds for each number of a batch, in all its arrays.
    mapped = 5e-8 * max(0, numbers_of_a_batch(problem) - (1 << 23))
    evaluations = steps + problem.time.outputs * batches
    rounds = math.ceil(problem.particles.replicas / available_cores())
    return replace(found, seconds=found.seconds + rounds * evaluations * mapped)


def _seconds(problem: ImageProblem, trial: ImageProblem, steps: float) -> float:
    """Time of all replicas, from gradients of batches with fewer samples and features of as many images.

    The weights of all replicas have one thread each.
    """
    stepper, training, settings = ConvolutionalReplicas(trial, range(1)), problem.training, problem.particles
    share, calls = training.batch_size / trial.training.batch_size, count()
    some = problem.data.split[0][: 2 * trial.training.batch_size]
    gradient = seconds_of(stepper.slopes)
    step = gradient * share + max(seconds_of(lambda: stepper.step(next(calls))) - gradient, 0.0)
    output = settings.loss_batches * share * gradient / 3.0  # the backward pass takes twice as long as the forward one
    if has_probe(problem):
        output += len(problem.data.read) * seconds_of(lambda: stepper.features(0, some)) / len(some)
    rounds = math.ceil(settings.replicas / available_cores())
    return rounds * (steps * step + problem.time.outputs * output)
