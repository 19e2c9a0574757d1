"""The family that the documentation writes outside of the package: its contract, its limit, and SGD as judge."""

import ast
import importlib
import sys

import numpy as np
import pytest

import meanfield
from meanfield.extend import checks_of
from meanfield.problems import known_families
from meanfield.problems.problem_keys import with_value
from tests import ROOT
from tests.documentation.pages import blocks

pytestmark = pytest.mark.usefixtures("plain_figures")

PAGE = ROOT / "docs" / "how-to" / "own_family.md"
FILES = {block.caption: block.text for block in blocks(PAGE.read_text(encoding="utf-8")) if block.caption}

MOST_LINES, MOST_IMPORTS = 80, 3

MOST_SIGMAS = 3.5
"""Standard errors; with a normal law and 20 comparisons one seed in 100 would exceed it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of the page, on the Python path."""
    folder = tmp_path_factory.mktemp("one_bit_ica")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    sys.modules.pop("one_bit_ica", None)
    for names in (known_families._found, known_families._of_class):
        for key in [key for key, found in names.items() if "ica" in str(key).lower() or "ICA" in str(found)]:
            del names[key]


@pytest.fixture(scope="module")
def module(folder):
    return importlib.import_module("one_bit_ica")


@pytest.fixture(scope="module")
def problem(module, folder):
    return meanfield.load_problem(folder / "ica.toml")


def test_the_family_is_short_and_needs_public_names_alone():
    source = FILES["one_bit_ica.py"]
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {getattr(node, "module", None) or node.names[0].name for node in imports}
    assert names <= {"meanfield.extend", "numpy", "pydantic"}
    assert sum(node.end_lineno - node.lineno + 1 for node in imports) <= MOST_IMPORTS
    assert len(source.splitlines()) <= MOST_LINES


@pytest.mark.slow
def test_contract(module, folder):
    """Of the page's example in fewer dimensions, which Python takes most of the time for."""
    example = folder / "example.toml"
    assert "dimension = 100\n" in example.read_text(encoding="utf-8")
    example.write_text(example.read_text(encoding="utf-8").replace("dimension = 100\n", "dimension = 30\n"))
    for name, check in checks_of(module.FAMILY):
        try:
            check()
        except AssertionError as error:
            raise AssertionError(name) from error


# Of other sources the moments are other numbers of the same formula.
@pytest.mark.parametrize(
    ("source", "q"),
    [
        ("laplace", 0.3),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("rademacher", 0.6), ("uniform", -0.8))),
    ],
)
def test_coefficients_are_those_of_the_step(module, problem, source, q):
    """Mean and variance of one step of plain SGD over 40 000 draws, at N = 400: corrections are of order 1/N."""
    problem = with_value(problem, "source", {"law": source})
    rng, N, draws = np.random.default_rng(3), 400, 40_000
    tau = problem.model.learning_rate
    (g,), diffusion = problem.closure()(np.array([q]))
    u = np.where(np.arange(N) % 2, 1.0, -1.0)
    rest = rng.standard_normal(N)
    rest -= u * (rest @ u) / N
    w = q * u + np.sqrt(1 - q * q) * rest * np.sqrt(N / (rest @ rest))
    change, spread = np.empty(draws), 0.0
    for first in range(0, draws, 1000):
        c = problem.source.sample(rng, (1000,))
        a = rng.standard_normal((1000, N))
        x = u * c / np.sqrt(N) + a - np.outer(a @ u, u) / N
        f = -((x @ w / np.sqrt(N)) ** 3)
        moved = w + tau / np.sqrt(N) * f[:, None] * np.sign(x)
        moved *= np.sqrt(N / (moved**2).sum(axis=1, keepdims=True))
        change[first : first + 1000] = moved @ u - w @ u
        spread += ((tau / np.sqrt(N) * f[:, None] * np.sign(x)) ** 2).sum()
    expected = -(1 - q * q) * g - 0.5 * q * diffusion
    error = change.std() / np.sqrt(draws)
    assert abs(change.mean() - expected) < MOST_SIGMAS * error + 5 * abs(expected) / N  # the order of corrections
    assert spread / draws == pytest.approx(diffusion, rel=0.05)  # the noise of E[f^2] with heavy tails


def test_density_follows_the_order_parameters_without_a_prior(module, problem):
    free = with_value(with_value(problem, "prior.name", "none"), "density.tolerance", 1e-7)
    density, ode = (meanfield.solve(free, method) for method in ("density", "order_parameters"))
    assert np.abs(density["q"] - ode["q"]).max() < 2e-7  # the tolerance of both


@pytest.mark.slow  # its coefficients are held against steps of SGD above; priors are the package's, with tests there
def test_density_under_a_prior_agrees_with_sgd(problem):
    problem = with_value(problem, "density.tolerance", 1e-4)  # a tenth of the standard errors of SGD, or less
    problem = with_value(with_value(problem, "time.stop", 3.0), "time.outputs", 4)  # half the time of the page
    density, sgd = (meanfield.solve(problem, method) for method in ("density", "particles"))
    report = meanfield.compare(density, sgd)
    for name in ("q", "r"):
        assert float(abs(report[f"{name}_difference"] / report[f"{name}_standard_error"]).max()) < MOST_SIGMAS
    free = meanfield.solve(with_value(problem, "prior.name", "none"), "order_parameters")
    error = sgd["q"].isel(time=-1).std("replica") / np.sqrt(sgd.sizes["replica"])
    shift = abs(free["q"] - density["q"]).isel(time=-1) / error
    assert shift.item() > MOST_SIGMAS  # without the prior it would not agree
