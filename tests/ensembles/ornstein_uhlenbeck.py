"""The simplest family of SGD: two numbers x of each replica with dx = -x dt + dB, in steps of time 1/N."""

from functools import partial

import numpy as np

from meanfield.ensembles.arrays import Identity
from meanfield.extend import EnsembleSettings, PythonStepper, Simulation, Time, replica_generator, run_ensemble

BEGINNING = np.array([1.0, -0.5])
MIX = np.array([[0.8, 0.0], [0.6, 0.5]])
"""Mixing matrix of dB, which has the covariance MIX MIX^T dt."""


class OrnsteinUhlenbeck(PythonStepper):
    kept = ("_x", "_generators")

    def __init__(self, particles, replicas):
        super().__init__(replicas)
        self._N = particles.dimension
        self._generators = [replica_generator(particles.seed, i) for i in replicas]
        self._x = np.tile(BEGINNING, (len(replicas), 1))

    def step(self, k):
        noise = np.stack([rng.standard_normal(2) for rng in self._generators])
        both = noise[:, :1] * MIX[:, 0] + noise[:, 1:] * MIX[:, 1]
        self._x = self._x - self._x / self._N + both / np.sqrt(self._N)

    @property
    def rows(self):
        return {"x": self._x, "energy": (self._x**2).sum(axis=1) / 2}


class WithMore(OrnsteinUhlenbeck):
    """Keeps, besides, weights, numbers that stay the same, and the output with the largest energy."""

    @property
    def snapshot(self):
        return {"weights": np.repeat(self._x, 3, axis=1), "number": np.array(self.replicas, float)}

    def marks(self, rows):
        energy = rows["energy"]
        return {"top": np.where(np.isfinite(energy).all(axis=1), energy.argmax(axis=1), -1)}


MORE = {"snapshots": {"weights": (6,)}, "constants": {"number": ()}, "marks": ("top",)}


def simulation_of(particles, stop=1.0, outputs=5, **more):
    settings, time = EnsembleSettings(**particles), Time(stop=stop, outputs=outputs)
    identity = Identity(f"{settings!r} {time!r}", {})
    return Simulation(identity, settings, time, {"x": (2,), "energy": ()}, **more)


def simulate(simulation, workers=None, record=None, stepper=OrnsteinUhlenbeck):
    return run_ensemble(simulation, lambda: partial(stepper, simulation.particles), workers, record)


def same(first, second):
    """Two results have the same arrays, to the last bit."""
    assert set(first.arrays) == set(second.arrays)
    for name, array in first.arrays.items():
        assert np.array_equal(array, second.arrays[name], equal_nan=True), name
