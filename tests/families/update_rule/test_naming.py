"""Rules are given as objects or by their addresses, and kinks by numbers or by the parameters that are there."""

import pytest

import meanfield
from tests.families.update_rule import own_rules
from tests.families.update_rule.problems import OWN, feature, problem

MARGIN = {"numbers": {"margin": 0.5}, "features": [feature(0.2)], "time": {"stop": 1.0, "outputs": 2}}


def test_kinks_at_a_parameter_are_those_at_its_value_in_any_units():
    one, other = (meanfield.solve_order_parameters(problem(f"at_{name}", 0.7, **MARGIN)) for name in ("half", "margin"))
    assert one["R"].values.tobytes() == other["R"].values.tobytes()


@pytest.mark.parametrize("name", ["at_half", "with_margin"])
def test_a_rule_or_a_function_is_taken_for_its_address(name):
    given = problem(name, 0.7, **MARGIN)
    found = meanfield.with_value(given, "model.rule", getattr(own_rules, name))
    assert found == given
    assert found.model.rule == f"{OWN}{name}"


def test_what_stands_in_no_module_is_taken_as_it_is():
    given = problem("at_half", 0.7, **MARGIN)
    same = own_rules.at_half
    found = meanfield.with_value(given, "model.rule", meanfield.Rule(same.step, kinks=same.kinks))
    one, other = (meanfield.solve_order_parameters(each) for each in (given, found))
    assert found.model.rule.startswith("object:Rule-")
    assert one["R"].values.tobytes() == other["R"].values.tobytes()
