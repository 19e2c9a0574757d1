"""Phases of hidden manifolds: order parameters, densities and SGD go on from one law or rate to the next.

Random phases have fixed seeds. The reference integrates by SciPy from corner to corner, with the equations of each
phase by themselves: their means of components are taken from the overlaps with the teacher, of which they are made.
"""

import itertools
from contextlib import suppress

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import State, make_system, observables, packed, unpacked
from meanfield.problems.base import corners_of
from meanfield.problems.phases import piece_at
from meanfield.testing.methods import Interrupting
from tests.families.hidden_manifold.problems import problem
from tests.families.hidden_manifold.test_in_time import ONE_UNIT, TWO_BLOCKS
from tests.references_in_time import THOUSANDTH, random_schedule

TIME = {"stop": 6.0, "outputs": 9}
TRAINING = {"learning_rate": 0.6, "output_learning_rate": 0.2, "batch_size": 2, "label_noise": 0.2, "weight_decay": 0.1}


def components(rng):
    """Two components, with means along the teacher in half of all cases."""
    chance, mean = rng.uniform(0.2, 0.8), rng.uniform(0.2, 1.5)
    means = [[mean], [-mean * chance / (1.0 - chance)]] if rng.random() < 0.5 else [[], []]
    weights = (chance, 1.0 - chance)
    return [
        {"weight": w, "scale": float(rng.uniform(0.5, 1.3)), "mean": m} for w, m in zip(weights, means, strict=True)
    ]


CHANGES = {
    "training.learning_rate": lambda rng: random_schedule(rng, 0.9) if rng.random() < 0.5 else rng.uniform(0.2, 0.9),
    "training.output_learning_rate": lambda rng: rng.uniform(0.0, 0.4),
    "training.batch_size": lambda rng: int(rng.integers(1, 5)),
    "training.label_noise": lambda rng: rng.uniform(0.0, 0.8),
    "training.weight_decay": lambda rng: random_schedule(rng, 0.4) if rng.random() < 0.5 else 0.0,
    "inputs.nonlinearity": lambda rng: ["sign", "tanh", "linear"][rng.integers(3)],
    "inputs.components": components,
    "teacher.output_weights": lambda rng: [rng.uniform(0.5, 1.5)],
}


def random_phases(seed):
    """Problem of two to four phases, each of which changes some keys; one ends at an output time."""
    rng = np.random.default_rng(seed)
    ends = [*np.sort(rng.uniform(0.3, 5.7, rng.integers(1, 4))), 6.0]
    ends[rng.integers(len(ends) - 1)] = 3.0
    phases = [
        {"stop": float(end), "set": {str(k): CHANGES[k](rng) for k in rng.choice(list(CHANGES), 3, replace=False)}}
        for end in np.unique(ends)
    ]
    return in_phases(phases, inputs={"spectrum": TWO_BLOCKS["spectrum"], "components": components(rng)})


def in_phases(phases, **changes):
    own = ONE_UNIT | {"training": TRAINING, "time": TIME} | changes
    return meanfield.with_value(problem(**own), "phases", phases)


def reference(given):
    """Q, R, v and the generalisation error at the output times, shape (times, 4)."""
    nodes, K, M = given.inputs.eigenvalues.nodes(2), given.students, given.teachers

    def equations(time):
        piece = piece_at(given, time).problem
        system = make_system(piece, nodes, 10)
        means = piece.component_means[(piece.component_means != 0.0).any(axis=1)]
        return piece, system, np.vstack([np.eye(M), means])

    def own_state(y, columns):
        r, sigma = y[: 2 * K * M].reshape(2, K, M), y[2 * K * M : 2 * K * (M + K)].reshape(2, K, K)
        return packed(State(r @ columns.T, sigma, y[-K * K - K : -K].reshape(K, K), y[-K:]))

    def velocity(t, y, low, high, piece, system, columns):
        system.training[:] = piece.training.numbers_at(np.clip([t], low, np.nextafter(high, low)))[:, 0]
        rate = np.empty(len(full := own_state(y, columns)))
        rates(full, system, rate)
        found = unpacked(system, rate)
        return np.concatenate([found.r[..., :M].ravel(), found.sigma.ravel(), found.Omega.ravel(), found.v])

    X, rho, t = given.initial_on_teacher, nodes.rho[:, None, None], given.teacher_overlap
    sigma = rho**2 * (X @ t @ X.T) + rho * given.student.rest
    Omega = given.inputs.aspect_ratio * np.mean(rho * (X @ t @ X.T), axis=0) + given.student.rest
    y = np.concatenate([(rho * (X @ t)).ravel(), sigma.ravel(), Omega.ravel(), given.student.output_weights])
    times, found = given.time.outputs_at, []
    for low, high in itertools.pairwise([*np.unique([*times, *corners_of(given)]), np.inf]):
        piece, system, columns = equations(low)
        if low in times:
            state = own_state(y, columns)
            seen = observables(system, unpacked(system, state))
            error = rates(state, system, np.empty(len(state)))
            found.append([seen["Q"].item(), seen["R"].item(), seen["v"].item(), error])
        if np.isfinite(high):
            of = (low, high, piece, system, columns)
            y = solve_ivp(velocity, (low, high), y, "DOP853", args=of, **THOUSANDTH).y[:, -1]
    return np.array(found)


NAMES = ("Q", "R", "v", "generalisation_error")


def numbers_of(result):
    return np.array([result[name].values.ravel() for name in NAMES]).T


def check_random_phases(seed):
    given = random_phases(seed)
    found = meanfield.solve_order_parameters(given)
    assert found.attrs["status"] == "complete"
    assert np.abs(numbers_of(found) - reference(given)).max() < 1e-8  # a hundred times the tolerance


@pytest.mark.parametrize("seed", range(4))
def test_order_parameters_go_through_any_phases(seed):
    check_random_phases(seed)


SHAPES = {
    "plain": {"dimension": 40, "replicas": 2, "method": "plain"},
    "chain": {"dimension": 40, "replicas": 2, "method": "chain"},
}


def trained(method, **changes):
    """Runs whose second phase has other components, noise, and batches that grow."""
    growing = {"times": [0.0, 4.0], "values": [1.0, 3.0], "interpolation": "step"}
    wider = [{"weight": 0.5, "scale": 0.6}, {"weight": 0.5, "scale": 1.4}]
    later = {"inputs.components": wider, "training.batch_size": growing, "training.label_noise": 0.5}
    alike = {"components": [{"weight": 0.5}, {"weight": 0.5}]}
    nonlinearity = TWO_BLOCKS if method == "chain" else {"nonlinearity": "sign"}
    own = {"inputs": nonlinearity | alike, "particles": SHAPES[method]} | changes
    return in_phases([{"stop": 2.3}, {"stop": 6.0, "set": later}], **own)


@pytest.mark.parametrize("method", SHAPES)
def test_runs_begin_as_those_of_the_first_phase_and_go_on_where_they_were_interrupted(method, tmp_path):
    given = trained(method)
    whole, first = (meanfield.simulate_sgd(p) for p in (given, meanfield.with_value(given, "phases", None)))
    assert np.array_equal(whole["Q"][:, :4], first["Q"][:, :4])  # the fourth output is at 2.25, before the phase
    assert not np.any(whole["Q"][:, 4:] == first["Q"][:, 4:])
    for states in (2, 9):
        with suppress(KeyboardInterrupt):
            meanfield.simulate_sgd(given, record=Interrupting(tmp_path / str(states), states))
        with meanfield.Checkpoint(tmp_path / str(states)) as record:
            assert meanfield.simulate_sgd(given, record=record).drop_attrs().equals(whole.drop_attrs())


ELSEWHERE = [{"weight": 0.5, "mean_elsewhere": 1.0}, {"weight": 0.5}]


@pytest.mark.parametrize(
    ("known", "later", "said"),
    [
        ([], [{"weight": 1.0, "scale": 0.5}], r"phases\[1\]\.set: has 1 of inputs\.components, and the problem 0"),
        (ELSEWHERE, [{"weight": 0.5}, {"weight": 0.5}], r"phases\[1\]\.set: .* mean_elsewhere, a direction that stays"),
    ],
)
def test_phases_in_which_a_component_comes_or_goes_are_refused(known, later, said):
    with pytest.raises(meanfield.InputError, match=said):
        in_phases([{"stop": 2.0}, {"stop": 6.0, "set": {"inputs.components": later}}], inputs={"components": known})


def test_means_that_come_in_a_phase_are_refused():
    apart = [{"weight": 0.5, "scale": 0.5}, {"weight": 0.5, "scale": 1.5}]
    given = in_phases(
        [{"stop": 2.0}, {"stop": 6.0, "set": {"inputs.nonlinearity": "abs"}}], inputs={"components": apart}
    )
    with pytest.raises(meanfield.InputError, match=r"phases\[1\]\.set: inputs have a mean, .* and not in others"):
        meanfield.solve_order_parameters(given)
    with pytest.raises(meanfield.InputError, match=r"inputs\.nonlinearity = 'abs' has other means"):
        meanfield.solve_density(given)


def test_a_number_within_a_list_that_a_phase_sets_can_be_set_by_itself():
    given = trained("plain")
    wider = meanfield.with_value(given, "phases[1].set.inputs.components[1].scale", 2.0)
    scales = [component.scale for component in meanfield.at_time(wider, 3.0).inputs.components]
    assert scales == [0.6, 2.0]
    assert meanfield.at_time(wider, 1.0).inputs == meanfield.at_time(given, 1.0).inputs
