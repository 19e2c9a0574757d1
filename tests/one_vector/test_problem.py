"""A family of one trained vector: what its base adds to a closure and a step."""

import numpy as np
import pytest

import meanfield
from meanfield.extend import InputError, VectorProblem, vector_family
from meanfield.problems import known_families

TAU, N = 0.05, 200


class Noise(VectorProblem):
    """Steps of pure noise: w moves by tau a/sqrt(N), so that g = 0 and Lambda = tau^2."""

    def closure(self):
        return lambda q: (np.zeros(1), self.model.learning_rate**2)

    def step(self, w, u, rng):
        return w + self.model.learning_rate * rng.standard_normal(len(w)) / np.sqrt(len(w))


FAMILY = vector_family("noise", "steps of noise", problem=f"{__name__}:Noise", example=f"{__name__}:none.toml")


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setitem(known_families._found, "noise", FAMILY)
    monkeypatch.setitem(known_families._of_class, Noise, ("noise", FAMILY))


def make(**tables):
    keys = {
        "model": {"activation": "linear", "learning_rate": TAU},
        "initial_overlap": 0.6,
        "time": {"stop": 2.0, "outputs": 3},
        "particles": {"dimension": N, "replicas": 4, "snapshots": [0.0, 2.0]},
    }
    return Noise(**keys | tables)


def test_weights_start_with_the_overlap_and_stay_on_the_sphere():
    run = meanfield.solve(make(), "particles")
    assert run["q"].values[:, 0, 0] == pytest.approx(0.6, abs=1e-12)  # rounding
    w, U = run["weights"].values, run["U"].values[..., 0]
    assert (w**2).mean(axis=2) == pytest.approx(1.0, abs=1e-12)  # rounding
    assert np.einsum("rti,ri->rt", w, U) / N == pytest.approx(run["q"].values[:, [0, 2], 0], abs=1e-12)  # rounding


def test_replicas_do_not_depend_on_their_number():
    few, many = (meanfield.solve(make(particles={"dimension": N, "replicas": count}), "particles") for count in (2, 5))
    assert np.array_equal(few["q"], many["q"][:2])


def test_noise_forgets_the_overlap_in_both_methods():
    """dq/dt = -Lambda q/2."""
    problem = make(model={"activation": "linear", "learning_rate": 0.8})
    exact = 0.6 * np.exp(-0.5 * 0.8**2 * problem.time.outputs_at)
    assert meanfield.solve(problem, "order_parameters")["q"].values[:, 0] == pytest.approx(exact, abs=1e-8)  # as stated
    density = meanfield.solve(problem, "density")
    assert (np.abs(density["q"].values[:, 0] - exact) <= density["q_error"].values[:, 0] + 1e-8).all()  # its estimate


def test_priors_that_a_method_cannot_take_are_refused():
    with pytest.raises(InputError, match=r"prior.name = 'l1'.*use the density or SGD"):
        meanfield.solve(make(prior={"name": "l1"}), "order_parameters")
    with pytest.raises(InputError, match=r"prior.strength = 1e\+06 with particles.dimension = 200: one step"):
        meanfield.solve(make(prior={"name": "l1", "strength": 1e6}), "particles")


def test_snapshots_must_be_outputs():
    with pytest.raises(InputError, match=r"particles.snapshots: 0.3 is not an output time"):
        make(particles={"dimension": N, "snapshots": [0.3]})
