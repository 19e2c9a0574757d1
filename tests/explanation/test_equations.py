"""Equations of problems as text, in notebooks and in reports; tests of families hold them against the code."""

import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import meanfield
from meanfield.explanation.formulas import Table, latex_of, rounded
from meanfield.problems.known_families import family_of
from meanfield.report import report
from tests.example_problems import SMALL, make_problem

RULE = """
family = "update_rule"
model = { rule = "perceptron", rule_parameters = { rate = 0.7 }, constraint = "sphere" }
features = [{ initial_overlap = 0.2 }]
time = { stop = 1.0 }
"""
NOISY = "augmentation = { variance = [0.4, 0.1], correlation = 0.6 }", 'model = { activation = "relu", momentum = 0.5 }'


@pytest.mark.parametrize("symbols", [False, True])
def test_tables_say_key_and_value_of_each_symbol(symbols):
    text = make_problem(*NOISY).latex(symbols)
    assert r"$\tau$ & \verb|model.learning_rate| & 0.02 \\" in text
    assert (r"\tau" in text.partition("tabular")[0]) == symbols


def test_a_symbol_stands_for_one_key():
    table = Table(symbols=True)
    table.known("lambda", "prior.strength", 0.3)
    table.known("lambda", "prior.strength", 0.3)
    with pytest.raises(AssertionError, match=r"decorrelation.strength and prior.strength"):
        table.known("lambda", "decorrelation.strength", 0.2)


def test_a_number_that_changes_in_time_keeps_its_symbol():
    lines = 'model.learning_rate = { schedule = "linear", start = 0.1, end = 0.0, duration = 5.0 }'
    text = make_problem(lines).latex()
    assert re.search(r"\$\\tau\$ & \\verb\|model.learning_rate\| & .*0\.1.* \\\\", text)
    assert r"\tau" in text.partition("tabular")[0]


def test_phases_are_said():
    phases = 'phases = [{ stop = 5.0 }, { stop = 10.0, set = { "model.batch_size" = 20 } }]'
    text = make_problem("time.stop = 10.0", phases).latex()
    assert r"\paragraph{Phases}" in text
    assert "= 20" in text


@pytest.mark.parametrize(
    ("value", "text"), [(0.02, "0.02"), (1 / 3, "0.333333333333333"), (1e-7, r"1 \cdot 10^{-7}"), (2.5, r"\frac{5}{2}")]
)
def test_numbers_are_decimals(value, text):
    assert latex_of(rounded(value)) == text


def test_notebooks_and_reports_have_mathml():
    for problem in (make_problem(), make_problem(*NOISY), meanfield.parse_problem(RULE)):
        html = problem._repr_html_()
        ElementTree.fromstring(f"<div>{re.sub(r'&(?!lt|gt|amp|quot)[a-zA-Z]+;', '', html)}</div>")  # well formed
        assert "<math" in html
        assert "$" not in html
    page = report({"limit": meanfield.solve_order_parameters(meanfield.parse_problem(SMALL))})
    assert "Its equations" in page
    assert "<math" in page


def test_problems_without_equations_say_so_and_show_their_text(monkeypatch):
    problem = meanfield.load_problem("data/problems/nine_points.toml")
    without = replace(family_of(problem), equations="")
    monkeypatch.setattr("meanfield.explanation.equations.family_of", lambda _: without)
    assert problem._repr_html_() is None
    with pytest.raises(meanfield.InputError, match="family = 'alpha_contrastive' declares no equations"):
        problem.latex()


def test_nothing_that_a_result_names_is_opened():
    result = meanfield.solve_order_parameters(meanfield.parse_problem(SMALL))
    text = result.attrs["problem"].replace('"quadratic"', '"no_such_module:sigma"')
    page = report({"limit": result.assign_attrs(problem=text)})
    assert "no_such_module:sigma" in page


def test_sympy_is_imported_by_those_who_write_equations_alone():
    code = "import sys, meanfield.explanation; print('sympy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout == "False\n"
