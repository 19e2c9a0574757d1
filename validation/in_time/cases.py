"""Random problems in time: what changes is kept as words, so that its values are computed here, and not by the library.

A seed fixes a case. Its numbers follow schedules of all shapes, and half of the cases have two or three phases, each of
which changes two keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import meanfield

DIMENSION = 12_500
"""N of SGD, whose bias, of order 1/N, is some hundredths of the scatter of means of runs, of order (N runs)^(-1/2)."""

Numbers = np.random.Generator
Values = dict[str, Any]


def is_schedule(value: object) -> bool:
    """Whether a value is a schedule in words."""
    return isinstance(value, dict) and bool({"times", "schedule"} & set(value))


def value_at(value: Any, t: float) -> Any:
    """Value of a schedule at a time, and any other value itself."""
    if not is_schedule(value):
        return value
    if "times" in value:
        if value["interpolation"] == "linear":
            return float(np.interp(t, value["times"], value["values"]))
        return value["values"][np.searchsorted(value["times"], t, side="right") - 1]
    if value["schedule"] == "exponential":
        return value["start"] * math.exp(-value["rate"] * t)
    start, peak, end, up, whole = (value[key] for key in ("start", "peak", "end", "warmup", "duration"))
    if t < up:
        return start + (peak - start) * t / up
    return end + (peak - end) * math.cos(0.5 * math.pi * min((t - up) / (whole - up), 1.0)) ** 2


def scaled(value: Any, factor: float) -> Any:
    """Number, list of numbers, or values of a schedule, times a factor; whole numbers stay whole."""
    if is_schedule(value):
        words = {key: value[key] for key in ("values", "start", "peak", "end") if key in value}
        return value | {key: scaled(held, factor) for key, held in words.items()}
    if isinstance(value, list):
        return [scaled(each, factor) for each in value]
    return round(factor * value) if isinstance(value, int) else factor * value


def schedule(rng: Numbers, low: float, high: float, stop: float) -> Values:
    """Random table or shape, whose values are between two numbers."""
    kind = rng.integers(4)
    if kind == 0:
        return {"schedule": "exponential", "start": high, "rate": rng.uniform(0.2, 1.0) * math.log(high / low) / stop}
    if kind == 1:
        warmup, duration = stop * rng.uniform(0.1, 0.4), stop * rng.uniform(0.6, 0.9)
        ends = {"start": low, "end": rng.uniform(low, high)}
        return {"schedule": "warmup_cosine", "peak": high, "warmup": warmup, "duration": duration} | ends
    times = [0.0, *np.sort(rng.uniform(0.05, 0.9, rng.integers(1, 4)) * stop).tolist()]
    values = rng.uniform(low, high, len(times)).tolist()
    if kind % 2:
        return {"times": times, "values": values, "interpolation": "step"}
    return {"times": [*times, stop], "values": [*values, values[-1]], "interpolation": "linear"}


def sizes(rng: Numbers, stop: float, *choices: int) -> Values:
    """Random batch sizes, which jump once."""
    times = [0.0, stop * rng.uniform(0.2, 0.8)]
    return {"times": times, "values": rng.choice(choices, 2).tolist(), "interpolation": "step"}


class Case(NamedTuple):
    """A problem in time.

    Parameters
    ----------
    base : Problem
        Its numbers are constant.
    stops : tuple of float
        Ends of the phases.
    sets : tuple of dict
        What each phase sets, schedules in words.
    """

    base: Any
    stops: tuple[float, ...]
    sets: tuple[Values, ...]

    @property
    def problem(self) -> Any:
        """The problem itself."""
        phases = [{"stop": stop, "set": {}} for stop in self.stops[:1]]
        phases += [{"stop": stop, "set": given} for stop, given in zip(self.stops[1:], self.sets[1:], strict=True)]
        return meanfield.with_values(self.base, self.sets[0] | ({"phases": phases} if len(phases) > 1 else {}))

    def phase(self, t: float) -> int:
        """Number of the phase at a time."""
        return next(i for i, stop in enumerate(self.stops) if t < stop or i == len(self.stops) - 1)

    def at(self, t: float) -> Values:
        """Value of each key at a time."""
        held: Values = {}
        for given in self.sets[: self.phase(t) + 1]:
            held |= given
        return {key: value_at(value, t) for key, value in held.items()}

    @property
    def corners(self) -> list[float]:
        """Times at which anything jumps or bends."""
        found = {*self.stops}
        for given in self.sets:
            for value in filter(is_schedule, given.values()):
                found |= {value[key] for key in ("warmup", "duration") if key in value} | set(value.get("times", ()))
        return sorted(time for time in found if 0.0 < time < self.stops[-1])

    def numbers(self) -> Iterator[tuple[int, str]]:
        """Phase and key of all that can be a fifth larger."""
        for phase, given in enumerate(self.sets):
            for key, value in given.items():
                if is_schedule(value) or isinstance(value, int | float | list):
                    yield phase, key

    def larger(self, phase: int, key: str, factor: float) -> Case:
        """The case with what one phase sets under one key times a factor."""
        given = self.sets[phase] | {key: scaled(self.sets[phase][key], factor)}
        return self._replace(sets=(*self.sets[:phase], given, *self.sets[phase + 1 :]))


def case_of(seed: int, base: Any, first: Values, later: dict[str, Callable[[], Any]]) -> Case:
    """Case of what is set from the start; in half of all cases one or two more phases set two keys each."""
    rng, stop = np.random.default_rng([seed, 1]), base.time.stop
    ends = np.sort(rng.uniform(0.15, 0.85, rng.integers(1, 3)) * stop).tolist() if seed % 2 else []
    chosen = (rng.choice(list(later), 2, replace=False).tolist() for _ in ends)
    return Case(base, (*ends, stop), (first, *({key: later[key]() for key in keys} for keys in chosen)))


def _three_point(rng: Numbers) -> Values:
    second = rng.uniform(0.8, 1.5)
    return {"law": "three_point", "second_moment": second, "fourth_moment": second**2 * rng.uniform(3.0, 5.0)}


def one_channel(seed: int) -> Case:
    """One feature under a linear prior, whose strength leaves the overlap as it is."""
    rng, stop = np.random.default_rng(seed), 6.0
    base = meanfield.Problem(
        model={"activation": "quadratic", "learning_rate": 0.1, "batch_size": 10},
        features=[
            {
                "hidden": _three_point(rng),
                "coordinate": {"law": "rademacher"},
                "initial_overlap": rng.uniform(0.3, 0.6),
            }
        ],
        prior={"name": "l2", "strength": 0.5},
        time={"stop": stop, "outputs": 7},
        density={"tolerance": 1e-6, "scheme": ["lagrangian", "eulerian"][rng.integers(2)]},
        particles={"dimension": DIMENSION, "replicas": 8, "method": "chain", "seed": seed},
    )
    first = {
        "model.learning_rate": schedule(rng, 0.02, 0.15, stop),
        "prior.strength": schedule(rng, 0.1, 2.0, stop),
    }
    later = {
        "features[0].hidden": lambda: _three_point(rng),
        "model.learning_rate": lambda: rng.uniform(0.03, 0.15),
        "model.batch_size": lambda: int(rng.choice([5, 15, 20])),
        "model.activation": lambda: ["cubic", "tanh"][rng.integers(2)],
        "model.centering": lambda: ["population", "batch"][rng.integers(2)],
        "augmentation": lambda: {"variance": rng.uniform(0.0, 0.5, 2).tolist(), "correlation": rng.uniform(-1.0, 1.0)},
    }
    return case_of(seed, base, first, later)


def two_channels(seed: int) -> Case:
    """Two channels of one feature with a penalty that sets them apart, under a linear prior."""
    rng, stop = np.random.default_rng(seed), 4.0
    base = meanfield.Problem(
        model={
            "activation": "quadratic", "learning_rate": 0.01, "batch_size": 5, "channels": 2,
            "initial_channel_overlap": rng.uniform(0.1, 0.4),
        },
        decorrelation={"strength": 0.05},
        features=[
            {
                "hidden": _three_point(rng),
                "coordinate": {"law": "rademacher"},
                "initial_overlap": rng.uniform(0.3, 0.6, 2).tolist(),
            }
        ],
        prior={"name": "l2", "strength": 0.5},
        time={"stop": stop, "outputs": 5},
        density={"tolerance": 5e-3, "scheme": "finite_volumes"},
        particles={"dimension": DIMENSION, "replicas": 8, "seed": seed},
    )  # fmt: skip
    first = {
        "model.learning_rate": schedule(rng, 0.01, 0.05, stop),
        "prior.strength": schedule(rng, 0.1, 2.0, stop),
        "decorrelation.strength": schedule(rng, 0.05, 0.3, stop),
    }
    later = {
        "features[0].hidden": lambda: _three_point(rng),
        "model.learning_rate": lambda: rng.uniform(0.01, 0.05),
        "decorrelation.strength": lambda: schedule(rng, 0.05, 0.3, stop),
        "model.batch_size": lambda: int(rng.choice([10, 15])),
        "augmentation": lambda: {"variance": rng.uniform(0.0, 0.4, 2).tolist()},
    }
    return case_of(seed, base, first, later)


def hidden_manifold(seed: int) -> Case:
    """One unit learns from one, on inputs with two eigenvalues."""
    rng, stop = np.random.default_rng(seed), 4.0
    base = meanfield.Problem(
        family="hidden_manifold",
        inputs={
            "nonlinearity": "linear", "aspect_ratio": 0.5, "spectrum": {"law": "atoms", "eigenvalues": [0.4, 1.6]},
        },
        teacher={"overlap": [[1.0]], "output_weights": [1.0]},
        student={
            "output_weights": [rng.uniform(0.5, 1.0)],
            "on_teacher": [[rng.uniform(0.1, 0.5)]],
            "elsewhere": [[rng.uniform(0.3, 0.7)]],
        },
        training={"learning_rate": 0.5},
        time={"stop": stop, "outputs": 5},
        order_parameters={"tolerance": 1e-10},
        particles={"dimension": DIMENSION, "replicas": 16, "method": "chain", "seed": seed},
    )  # fmt: skip
    first = {
        "training.learning_rate": schedule(rng, 0.2, 1.0, stop),
        "training.output_learning_rate": schedule(rng, 0.05, 0.5, stop),
        "training.label_noise": schedule(rng, 0.1, 0.8, stop),
        "training.weight_decay": schedule(rng, 0.05, 0.6, stop),
        "training.batch_size": sizes(rng, stop, 5, 10),
    }
    later = {
        "training.learning_rate": lambda: rng.uniform(0.2, 1.0),
        "training.label_noise": lambda: schedule(rng, 0.1, 0.8, stop),
        "training.weight_decay": lambda: rng.uniform(0.05, 0.6),
        "training.batch_size": lambda: int(rng.choice([5, 10])),
        "teacher.output_weights": lambda: [rng.uniform(0.6, 1.5)],
    }
    return case_of(seed, base, first, later)


def _points(rng: Numbers) -> Values:
    share = rng.dirichlet(np.full(5, 4.0))
    return {"law": "points", "points": rng.normal(size=(5, 2)).tolist(), "probabilities": share.tolist()}


def alpha_contrastive(seed: int) -> Case:
    """Filters on the circle with tanh and a Gaussian importance; batches are finite in the flow, too."""
    rng, stop = np.random.default_rng(seed), 2.0
    base = meanfield.Problem(
        family="alpha_contrastive",
        model={"activation": "tanh"},
        data=_points(rng),
        importance={"kind": "gaussian", "temperature": 0.5},
        filters={"count": 20, "start": {"law": "random", "seed": seed}},
        population={"finite_batch": True, "tolerance": 1e-12},
        training={"learning_rate": 1e-3, "batch_size": 40},
        particles={"replicas": 8, "test_batches": 1, "common_start": True, "seed": seed},
        time={"stop": stop, "outputs": 5},
    )
    first = {
        "importance.temperature": schedule(rng, 0.1, 0.6, stop),
        "training.learning_rate": schedule(rng, 1e-3, 3e-3, stop),
        "training.batch_size": sizes(rng, stop, 20, 30, 40),
        "training.momentum": schedule(rng, 0.1, 0.5, stop),
    }
    later = {
        "data": lambda: _points(rng),
        "importance.temperature": lambda: schedule(rng, 0.1, 0.6, stop),
        "training.batch_size": lambda: int(rng.choice([10, 50])),
        "training.momentum": lambda: rng.uniform(0.1, 0.5),
        "training.weight_decay": lambda: rng.uniform(0.1, 0.4),
    }
    return case_of(seed, base, first, later)


def latent_tree(seed: int) -> Case:
    """Two latents of two leaves, two nodes each, and normalised outputs under InfoNCE or a triplet loss."""
    rng, stop = np.random.default_rng(seed), 3.0
    signs, triplet = rng.choice([-1.0, 1.0], 6), bool(rng.integers(2))
    polarity = (signs * rng.uniform(0.5, 0.9, 6)).tolist()
    lowest = rng.normal(0.0, 0.7, (2, 2, 2))
    lowest[:, [0, 1], [0, 1]] = np.abs(lowest[:, [0, 1], [0, 1]])  # no node is shut for all inputs
    base = meanfield.Problem(
        family="latent_tree",
        tree={"depth": 2, "root": [0.4, 0.6], "polarity": [polarity[:2], polarity[2:]]},
        network={
            "nodes_per_latent": 2,
            "output_normalisation": True,
            "epsilon": 0.1,
            "initial": {
                "law": "explicit",
                "weights": [lowest.tolist(), rng.normal(0.0, 0.6, (1, 2, 4)).tolist()],
            },
        },
        loss={"kind": "triplet" if triplet else "infonce", "temperature": 0.5},
        population={"tolerance": 1e-12},
        training={"learning_rate": 0.0025, "batch_size": 64},
        particles={"replicas": 8, "seed": seed},
        time={"stop": stop, "outputs": 4},
    )
    margin = {"loss.margin": schedule(rng, 0.1, 0.5, stop)} if triplet else {}
    first = margin | {
        "loss.temperature": schedule(rng, 0.3, 1.0, stop),
        "training.learning_rate": schedule(rng, 0.00125, 0.005, stop),
        "training.batch_size": sizes(rng, stop, 50, 100),
    }
    later = {
        "loss.temperature": lambda: rng.uniform(0.3, 1.0),
        "training.learning_rate": lambda: rng.uniform(0.00125, 0.005),
        "training.batch_size": lambda: int(rng.choice([50, 100])),
    }
    return case_of(seed, base, first, later)


def update_rule(seed: int) -> Case:
    """A perceptron under weight decay learns from a teacher, on inputs whose variance changes."""
    rng, stop = np.random.default_rng(seed), 4.0
    base = meanfield.Problem(
        family="update_rule",
        model={"rule": "perceptron", "rule_parameters": {"rate": 0.5}},
        features=[{"initial_overlap": rng.uniform(0.0, 0.5)}],
        prior={"name": "l2", "strength": 0.1},
        order_parameters={"tolerance": 1e-10},
        particles={"dimension": DIMENSION, "replicas": 16, "seed": seed},
        time={"stop": stop, "outputs": 5},
    )
    first = {
        "model.rule_parameters.rate": schedule(rng, 0.2, 1.0, stop),
        "model.batch_size": int(rng.integers(1, 5)),
        "prior.strength": schedule(rng, 0.05, 0.4, stop),
    }
    later = {
        "model.rule_parameters.rate": lambda: rng.uniform(0.2, 1.0),
        "model.batch_size": lambda: int(rng.integers(1, 5)),
        "data.noise": lambda: rng.uniform(0.5, 2.0),
        "prior.strength": lambda: schedule(rng, 0.05, 0.4, stop),
    }
    return case_of(seed, base, first, later)
