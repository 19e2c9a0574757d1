"""States that a list lacks are said: what attracts where the norm condenses, and where densities rest between wells."""

import numpy as np
import pytest

import meanfield
from meanfield import find_stationary_states, solve_density
from meanfield.cli import DONE
from meanfield.commands.dispatch import run_named
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.limit import limit_of
from meanfield.mckean_vlasov.stationary import all_states, index_of, missing_states
from meanfield.problems.file import format_problem
from tests.example_problems import feature, features, make_problem

CONDENSES = make_problem(
    'model = { activation = "hard_tanh", centering = "batch", learning_rate = 0.6752, batch_size = 50 }',
    features(feature(0.2, '{ law = "rademacher" }', coordinate="uniform")),
    'prior = { name = "elastic_net", strength = 0.4218 }',
)
"""States at q = +-.99986 attract, those at +-.61353 repel, and what starts between them goes to q = 0."""


def test_an_attractor_where_the_norm_condenses_is_missing(tmp_path, capsys):
    path = tmp_path / "problem.toml"
    path.write_text(format_problem(CONDENSES))
    assert run_named(["stationary", str(path), "-o", str(tmp_path / "states.nc")]) == DONE
    found = meanfield.load(tmp_path / "states.nc")
    assert found["q"].values[:, 0] == pytest.approx([-0.99986, -0.61353, 0.61353, 0.99986], abs=5e-6)  # five digits
    assert found["stability"].values.tolist() == [1, -1, -1, 1]
    assert found.attrs["indices_add_up"] == "false"
    start = "a state that attracts is missing between q = -0.6135 and 0.6135: no density has the norm 1 at q = 0, where"
    assert found.attrs["warning"].startswith(f"{start} the prior outweighs the noise: Lambda = 0.00721, below")
    assert f"warning: {found.attrs['warning']}" in capsys.readouterr().err


def test_branches_say_what_is_missing_at_each_end():
    found = meanfield.contrastive.continue_stationary_states(CONDENSES, "prior.strength", 0.4217, 0.4218, points=2)
    said = found.attrs["warning"].split("; at prior.strength = 0.4218 ")
    assert [text.partition(" between")[0].removeprefix("at prior.strength = 0.4217 ") for text in said] == [
        "a state that attracts is missing"
    ] * 2


def test_a_list_that_is_whole_says_nothing():
    found = find_stationary_states(make_problem(features(feature(0.5), feature(0.3))))
    assert found.sizes["state"] == 9
    assert found.attrs["indices_add_up"] == "true"
    assert "warning" not in found.attrs


@pytest.mark.parametrize(
    ("dropped", "where", "attracts"),
    [([1], "q = -0.9", False), ([0], "q = -1 and 0", True), ([0, 2], "q = -1 and 0", True)],
)
def test_a_state_that_is_left_out_of_a_line_is_missed(dropped, where, attracts):
    problem = make_problem()
    equations, states = all_states(limit_of(problem, Closure(problem)))
    kept = [state for number, state in enumerate(states) if number not in dropped]
    assert missing_states(equations, *zip(*[(state.q, state.topological_index) for state in states], strict=True)) == []
    missing = missing_states(equations, *zip(*[(state.q, state.topological_index) for state in kept], strict=True))[0]
    assert where in missing.where
    assert missing.attracts == attracts
    assert missing.empty is None
    assert [state.topological_index for state in states] == [index_of(equations, state.q) for state in states]


def test_states_are_checked_with_what_was_found_of_them():
    """To integrate them all once more took a fifth of the time."""
    limit = limit_of(CONDENSES, Closure(CONDENSES))
    equations, found = all_states(limit)
    before = equations.effort.densities
    missing = missing_states(equations, [state.q for state in found], [state.topological_index for state in found])
    assert len(missing) == 1
    # Of one overlap, q = 0, it is asked whether it has a density; eleven thousand had been integrated.
    assert equations.effort.densities - before < 1000


def between_wells(*lines, strength=5.12):
    prior = f'prior = {{ name = "double_well", strength = {strength} }}'
    return make_problem('model = { activation = "softplus", learning_rate = 0.05 }', prior, *lines)


def test_wells_that_hold_their_shares_are_said():
    assert "densities and SGD rest frozen" in find_stationary_states(between_wells()).attrs["warning"]
    assert "frozen" not in find_stationary_states(between_wells(strength=0.001)).attrs.get("warning", "")


@pytest.mark.slow
def test_densities_that_rest_between_wells_are_no_states():
    """The density ends where the wells hold the shares that they had: at q = .4055, where there is no state."""
    problem = between_wells("time = { stop = 60.0, outputs = 3 }", "density.tolerance = 1e-2")
    found, run = find_stationary_states(problem), solve_density(problem)["q"].values[:, 0]
    assert abs(run[-1] - run[-2]) < 1e-4
    assert np.abs(found["q"].values[:, 0] - run[-1]).min() > 0.1
