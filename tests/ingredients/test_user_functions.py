"""Functions by name: where a user's own are looked for, and what is said of those that will not do."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from meanfield import InputError, Prior
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.user_functions import build, is_address, load_object
from meanfield.problems.file import format_problem, load_problem, parse_problem
from meanfield.problems.problem_keys import with_values
from tests.example_problems import make_problem, problem_text

OWN = """
import math

from meanfield import Activation, Prior

parabola = Activation(lambda x: x * x, lambda x: 2 * x)
pull = Prior(lambda w: w, lambda w: 0.5 * w * w)
number = 3
nothing = None
listed = Activation(lambda x: abs(x), lambda x: 1.0 if x > 0 else -1.0, kinks=[0.0])

def text(x):
    return str(x)

def of_two(x, y):
    return x * y

def of_none():
    return 1.0

def of_floats_only(x):
    return math.erf(x)

def power(exponent):
    if exponent < 1:
        raise ValueError(f"exponent = {exponent} must be at least 1")
    shift = 1 / (exponent - 2)
    return Activation(lambda x: shift * x, lambda x: shift)

def optional(scale=2.0):
    return Activation(lambda x: scale * x, lambda x: scale)

def returns_a_number(scale=1.0):
    return scale
"""


@pytest.fixture
def write(tmp_path):
    """Write a module."""

    def write_module(name, source, folder=tmp_path):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(source)

    return write_module


def text_of(activation="quadratic", parameters="", prior="none", prior_parameters=""):
    return problem_text(
        f'model = {{ activation = "{activation}", activation_parameters = {{ {parameters} }} }}',
        f'prior = {{ name = "{prior}", parameters = {{ {prior_parameters} }} }}',
    )


def write_problem(folder, *given, **keys):
    path = folder / "problem.toml"
    path.write_text(text_of(*given, **keys))
    return path


@pytest.fixture
def refusal(write, tmp_path):
    """What is said of a problem that names one of the functions in `OWN`, or ours."""
    write("own_registry", OWN)

    def message(**keys):
        with pytest.raises(InputError) as error:
            load_problem(write_problem(tmp_path, **keys))
        return str(error.value)

    return message


def assert_same_closure(path, name):
    """The activation of that file is ours of that name."""
    found = Closure(load_problem(path))([0.3])
    right = Closure(load_problem(write_problem(path.parent, name)))([0.3])
    for a, b in zip(found, right, strict=True):
        assert a == pytest.approx(b, rel=1e-14)  # rounding: the same function


def test_an_address_has_a_colon():
    assert [is_address(name) for name in ("package.module:name", "tanh")] == [True, False]


def softer(w):
    return np.tanh(w)


def test_functions_and_descriptions_are_taken_for_their_addresses(monkeypatch):
    """A description stands in no module by itself: those of its functions are looked through, and that of the user."""
    pull = Prior(softer, lambda w: np.log(np.cosh(w)))
    alone = with_values(make_problem(), {"prior.name": pull, "prior.strength": 0.1})
    assert re.fullmatch("object:Prior-[0-9a-f]{16}", alone.prior.name)
    monkeypatch.setattr(sys.modules[__name__], "pull", pull, raising=False)
    for name in (softer, pull):
        address = f"{__name__}:{'pull' if name is pull else 'softer'}"
        found, given = (
            with_values(make_problem(), {"prior.name": each, "prior.strength": 0.1}) for each in (name, address)
        )
        assert found == given
        assert found.prior.name == address


@pytest.mark.parametrize("place", ["path", "working directory", "folder"])
def test_where_a_module_is_looked_for(write, tmp_path, monkeypatch, place):
    name = f"found_in_{place.replace(' ', '_')}"
    write(name, "constant = 41\n")
    if place == "path":
        monkeypatch.syspath_prepend(tmp_path)
    if place == "working directory":
        monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert load_object(f"{name}:constant", tmp_path if place == "folder" else None) == 41
    assert sys.path == before


def test_a_module_elsewhere_is_not_found(write, tmp_path):
    write("found_nowhere", "constant = 41\n")
    with pytest.raises(ValueError, match="cannot be imported"):
        load_object("found_nowhere:constant", tmp_path / "another")


def test_a_module_in_a_package(write, tmp_path):
    write("__init__", "", tmp_path / "own_package")
    write("part", "constant = 43\n", tmp_path / "own_package")
    assert load_object("own_package.part:constant", tmp_path) == 43


def test_the_path_is_restored_after_a_failure(write, tmp_path):
    write("broken_module", "1 / 0\n")
    before = list(sys.path)
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        load_object("broken_module:name", tmp_path)
    assert sys.path == before


def test_a_module_that_a_program_imports_anew_stays(write, tmp_path, monkeypatch):
    """It came from beside a problem file once; what the program has imported since then is not replaced."""
    for folder in ("first", "second"):
        write("imported_anew", f"constant = '{folder}'\n", tmp_path / folder)
    assert load_object("imported_anew:constant", tmp_path / "first") == "first"
    assert load_object("imported_anew:constant", tmp_path / "second") == "second"  # of the other problem file
    monkeypatch.delitem(sys.modules, "imported_anew")
    monkeypatch.syspath_prepend(tmp_path / "first")
    module = importlib.import_module("imported_anew")
    load_object("imported_anew:constant", tmp_path / "first")
    assert sys.modules["imported_anew"] is module


def test_an_installed_module_comes_before_one_beside_the_problem(write, tmp_path):
    """A file that happens to be called like a library does not replace it."""
    write("colorsys", "ONE_THIRD = 0\n")
    assert load_object("colorsys:ONE_THIRD", tmp_path) == pytest.approx(1 / 3)


@pytest.mark.parametrize("working_directory", ["beside", "elsewhere"])
def test_a_module_beside_the_problem_file(write, tmp_path, monkeypatch, working_directory):
    """It serves the problem wherever it is used."""
    write("beside_problem", OWN)
    folder = tmp_path / "another"
    folder.mkdir()
    monkeypatch.chdir(tmp_path if working_directory == "beside" else folder)
    path = write_problem(tmp_path, "beside_problem:parabola", prior="beside_problem:pull")
    problem = load_problem(Path("problem.toml") if working_directory == "beside" else path)
    np.testing.assert_array_equal(problem.prior.force(np.array([-1.5, 2.0])), [-1.5, 2.0])
    assert_same_closure(path, "quadratic")


def test_modules_of_the_same_name_beside_two_problem_files(write, tmp_path):
    """Each problem has the functions that lie beside its own file."""
    values = []
    for folder, factor in ((tmp_path / "first", 2.0), (tmp_path / "second", 3.0)):
        write("own_twice", f"def line(x):\n    return {factor} * x\n", folder)
        problem = load_problem(write_problem(folder, "own_twice:line", prior="own_twice:line"))
        values.append((problem.model.activation_functions.value(1.0), problem.prior.force(np.array([1.0]))[0]))
    assert values == [(2.0, 2.0), (3.0, 3.0)]


# What a stored problem may do


SIDE_EFFECT = """
from pathlib import Path

Path(__file__).with_suffix(".touched").touch()

def line(x):
    return 2.0 * x
"""


def test_text_from_a_result_imports_nothing(write, tmp_path, monkeypatch):
    """Whoever opens somebody's result runs none of his code."""
    write("side_effect", SIDE_EFFECT)
    monkeypatch.syspath_prepend(tmp_path)
    path = write_problem(tmp_path, "side_effect:line", prior="side_effect:line")
    touched = tmp_path / "side_effect.touched"
    stored = parse_problem(path.read_text(), trusted=False)
    assert parse_problem(format_problem(stored), trusted=False) == stored
    assert stored.model.activation == stored.prior.name == "side_effect:line"
    assert not touched.exists()
    assert "side_effect" not in sys.modules
    loaded = load_problem(path)
    assert touched.exists()
    assert loaded == stored
    assert format_problem(loaded) == format_problem(stored)


def test_a_module_that_is_missing_is_missed_at_once_and_of_a_result_when_it_is_used():
    text = text_of("gone_module:f", prior="gone_module:g")
    with pytest.raises(InputError) as caught:
        parse_problem(text)
    first, second = str(caught.value).splitlines()
    assert re.match(r"model\.activation: 'gone_module:f'.*cannot be imported.*put it on", first)
    assert re.match(r"prior\.name: 'gone_module:g'.*cannot be imported.*put it on", second)
    stored = parse_problem(text, trusted=False)
    with pytest.raises(InputError, match=r"model\.activation = 'gone_module:f': no module is imported"):
        Closure(stored)
    with pytest.raises(InputError, match=r"prior\.name = 'gone_module:g': no module is imported"):
        stored.prior.force(np.zeros(1))


def test_problems_made_in_python_are_checked_as_files_are(write, tmp_path, monkeypatch):
    """Functions on the Python path and files of the working directory, at once; see also `test_empirical`."""
    write("python_path", "def wrong(x):\n    return undefined(x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    plain = make_problem()
    for message, key, value in [
        (r"model\.activation: 'python_path:wrong'", "model", {"activation": "python_path:wrong"}),
        (
            r"prior\.name: 'no_such_module:f': module 'no_such_module' cannot be imp",
            "prior",
            {"name": "no_such_module:f"},
        ),
    ]:
        data = plain.model_dump()
        data[key] = data[key] | value
        with pytest.raises(InputError, match=message):
            Problem(**data)
        with pytest.raises(InputError, match=message):
            with_values(plain, {f"{key}.{name}": word for name, word in value.items()})


# What is refused, for activations and priors alike


WHERE = [("activation", "parameters", "model.activation"), ("prior", "prior_parameters", "prior.name")]


@pytest.mark.parametrize(("key", "_", "shown"), WHERE)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("quadratik", ["unknown name 'quadratik'", "'package.module:name'"]),
        ("zzz", ["unknown name 'zzz'", "known: ", "'package.module:name'"]),
        ("no_such_module:f", ["'no_such_module:f'", "No module named 'no_such_module'", "put it on the Python path"]),
        (":f", ["':f'", "cannot be imported", "put it on the Python path"]),
        ("own_registry:parabolla", ["module 'own_registry' has no 'parabolla'", "did you mean 'parabola'?"]),
        ("own_registry:pul", ["module 'own_registry' has no 'pul'", "did you mean 'pull'?"]),
        ("own_registry:", ["module 'own_registry' has no ''", "known: ", "parabola"]),
        ("own_registry:number", ["'own_registry:number' is int", "not a Python function of one number"]),
        ("own_registry:nothing", ["'own_registry:nothing' is NoneType", "not a Python function of one number"]),
        ("own_registry:Prior", ["'own_registry:Prior' is type", "not a Python function of one number"]),
        ("own_registry:of_two", ["'own_registry:of_two' takes y besides a number", "a function of them that returns"]),
        ("own_registry:of_none", ["'own_registry:of_none' cannot be compiled", "takes 0 arguments"]),
        ("own_registry:optional", ["'own_registry:optional' cannot be compiled"]),
        ("own_registry:power", ["'own_registry:power' cannot be compiled"]),
    ],
)
def test_what_names_no_function(refusal, key, _, shown, name, words):
    found = refusal(**{key: name})
    assert all(word in found for word in [f"problem.toml: {shown}: ", *words]), found


def test_an_error_in_a_module_has_its_line(tmp_path):
    (tmp_path / "own_kinks.py").write_text("import meanfield\n\nact = meanfield.Activation(abs, kinks=0.0)\n")
    with pytest.raises(
        ValueError, match=r"InputError: kinks = 0\.0: give a list of numbers.*, in line 3\); correct it"
    ):
        load_object("own_kinks:act", tmp_path)
    (tmp_path / "own_script.py").write_text("import sys\n\nsys.exit(3)\n")
    with pytest.raises(ValueError, match=r"SystemExit: 3, in line 3\); correct it"):
        load_object("own_script:act", tmp_path)


@pytest.mark.parametrize(("key", "_", "shown"), WHERE)
def test_a_function_is_not_an_activation_and_a_prior(refusal, key, _, shown):
    name, kind = ("pull", "Prior") if key == "activation" else ("parabola", "Activation")
    found = refusal(**{key: f"own_registry:{name}"})
    assert f"{shown}: 'own_registry:{name}' is {kind}, not a Python function of one number" in found


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("text", ["'own_registry:text' cannot be compiled", "No conversion", "use arithmetic"]),
    ],
)
def test_the_compiler_gives_a_reason(refusal, name, words):
    """And not the name of the pass in which it gave up."""
    found = refusal(activation=f"own_registry:{name}")
    assert all(word in found for word in ["model.activation: ", "cannot be compiled", *words]), found
    assert "Pass nopython" not in found


@pytest.mark.parametrize(("key", "parameters", "shown"), WHERE)
@pytest.mark.parametrize(
    ("name", "numbers", "words"),
    [
        ("own_registry:optional", "scal = 2.0", ["'scal'", "did you mean 'scale'?"]),
        ("own_registry:power", "exponent = 3.0, root = 2.0", ["'root'", "known: exponent"]),
        ("own_registry:power", "root = 2.0", ["'root'", "known: exponent"]),
        ("own_registry:text", "scale = 2.0", ["'own_registry:text'", "'scale'"]),
        ("own_registry:number", "scale = 2.0", ["'own_registry:number'", "int"]),
        ("own_registry:parabola", "scale = 2.0", ["'own_registry:parabola'", "Activation"]),
        ("own_registry:power", "exponent = 0.5", ["exponent = 0.5 must be at least 1"]),
        ("own_registry:power", "exponent = 2.0", ["'own_registry:power'", "ZeroDivisionError"]),
        ("own_registry:returns_a_number", "scale = 2.0", ["'own_registry:returns_a_number'", "float"]),
    ],
)
def test_bad_parameters_of_ones_own(refusal, key, parameters, shown, name, numbers, words):
    found = refusal(**{key: name, parameters: numbers})
    assert all(word in found for word in [shown.partition(".")[0], *words]), found


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"activation": "leaky_relu", "parameters": "slop = 0.1"}, ["model.activation", "'slop'", "'slope'?"]),
        ({"activation": "leaky_relu", "parameters": "zzz = 0.1"}, ["model.activation", "'zzz'", "known: slope"]),
        ({"activation": "relu", "parameters": "slope = 0.1"}, ["model.activation", "'relu'", "'slope'", "takes none"]),
        ({"activation": "leaky_relu", "parameters": "slope = nan"}, ["model.activation_parameters", "nan", "finite"]),
        ({"activation": "leaky_relu", "parameters": "slope = 'x'"}, ["model.activation_parameters", "'x'", "number"]),
    ],
)
def test_bad_parameters_of_ours(refusal, keys, words):
    found = refusal(**keys)
    assert all(word in found for word in words), found


def test_kinks_in_a_list(write, tmp_path):
    """A list of kinks does as well as a tuple."""
    write("own_listed", OWN)
    assert_same_closure(write_problem(tmp_path, "own_listed:listed"), "abs")


# The checks themselves


def test_build_takes_entries_and_functions_of_parameters():
    plain = Prior(lambda w: w)
    table = {"plain": plain, "scaled": lambda scale=2.0: Prior(lambda w: scale * w)}
    assert build(table, "plain", {}) is plain
    assert build(table, "scaled", {}).unit_force(1.0) == 2.0
    assert build(table, "scaled", {"scale": 5.0}).unit_force(1.0) == 5.0
