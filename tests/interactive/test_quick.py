"""`meanfield.quick`: names, rules and problems lead to one picture with a verdict."""

import numpy as np
import pytest

import meanfield
from meanfield.interactive import quick as room
from meanfield.problems.known_families import families
from tests.example_problems import feature, features, make_problem

SMALL = make_problem("particles.method = 'auto'", "particles.replicas = 8", "time.outputs = 3")


def step(s, y, rate):
    return rate * (y - s)


@pytest.fixture(scope="module")
def picture():
    return meanfield.quick(SMALL)


def test_the_limit_and_sgd_are_compared_and_drawn(picture):
    assert list(picture.results.children) == ["order_parameters", "SGD"]
    assert picture.verdict == picture.comparison.attrs["verdict"] == "AGREES"
    assert "AGREES" in picture.figure.get_suptitle()
    assert repr(picture).startswith("test\norder_parameters - SGD: AGREES")
    assert repr(picture).endswith(".save('first.png') draws it, see also .results")


def test_a_notebook_shows_the_picture_and_the_verdict(picture):
    html = picture._repr_html_()
    assert html.startswith('<img alt="limit and SGD" src="data:image/png;base64,')
    assert "order_parameters - SGD: AGREES" in html


def test_it_is_saved_by_the_ending(picture, tmp_path):
    for name in ("a.png", "a.svg", "a.nc", "a.html"):
        picture.save(tmp_path / name)
    assert meanfield.load_collection(tmp_path / "a.nc").identical(picture.results)
    assert "AGREES" in (tmp_path / "a.html").read_text()
    with pytest.raises(meanfield.InputError, match="'txt' is no figure format"):
        picture.save(tmp_path / "a.txt")
    with pytest.raises(meanfield.InputError, match=r"path = 3: give the path of a file, such as 'first\.png'"):
        picture.save(3)


@pytest.fixture
def solved(monkeypatch):
    """Problems that would be solved, and by which method; nothing is."""
    found = []

    def note(problem, method="particles"):
        found.append((method, problem))
        raise meanfield.InputError("refused here")

    monkeypatch.setattr(room, "solve", note)
    return found


def asked(solved, *what, **values):
    solved.clear()
    with pytest.raises(meanfield.InputError, match=r"^no method predicts SGD of this problem\n.*refused here"):
        meanfield.quick(*what, **values)
    return solved[0][1]


@pytest.mark.parametrize("family", [*families()], ids=lambda family: family.name)
def test_a_family_is_shown_in_a_small_size(family, solved):
    problem = asked(solved, family.name)
    assert type(problem) is family.problem_class
    assert problem.particles.replicas >= 8


def test_nothing_means_the_first_family(solved):
    assert asked(solved) == asked(solved, "contrastive")
    assert [method for method, _ in solved[:2]] == ["density", "order_parameters"]  # it keeps weights


def test_an_example_and_a_file_are_solved_as_they_are(solved, tmp_path):
    example = meanfield.load_problem("data/problems/no_prior.toml")
    assert asked(solved, "no_prior") == example
    assert asked(solved, "data/problems/no_prior.toml") == example


def test_values_are_named_by_their_last_word_or_in_full(solved):
    changed = asked(solved, SMALL, stop=3.0, **{"features[0].initial_overlap": 0.1}, prior={"name": "l2"})
    assert (changed.time.stop, changed.features[0].initial_overlap, changed.prior.name) == (3.0, 0.1, "l2")
    two = make_problem(features(feature(), feature()))
    words = r"initial_overlap: 2 keys end in this word \(features\[0\].* give one in full, \*\*{'features\[0\]"
    with pytest.raises(meanfield.InputError, match=words):
        meanfield.quick(two, initial_overlap=0.1)
    with pytest.raises(meanfield.InputError, match=r"no key 'learning_rat'; did you mean 'model\.learning_rate'"):
        meanfield.quick(SMALL, learning_rat=0.1)


@pytest.mark.parametrize("rule", [step, meanfield.Rule(step)], ids=["function", "rule"])
def test_a_rule_takes_its_parameters_and_other_keys(rule, solved):
    problem = asked(solved, rule, rate=0.5, stop=2.0, features=[{"initial_overlap": 0.3}], title="mine")
    assert dict(problem.model.rule_parameters) == {"rate": 0.5}
    assert (problem.time.stop, problem.features[0].initial_overlap, problem.title) == (2.0, 0.3, "mine")
    assert asked(solved, rule, rate=0.5).title == "step"


def test_a_rule_that_lacks_something_says_what():
    with pytest.raises(meanfield.InputError, match=r"^model\.rule, step reads 'rate'"):
        meanfield.quick(step)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("contrastiv", "what = 'contrastiv': did you mean 'contrastive'"),
        ("phase_diagram", "what = 'phase_diagram': known: "),  # a sweep
        ("first.toml", r"first\.toml: no such problem file"),
        (3, "what = 3: give a function of a step, a meanfield.Rule, a problem, or the name of a family"),
        (None, "what = None: give a function"),
        (meanfield.Rule(3), "step is int; give a function"),
    ],
)
def test_what_is_nothing_to_look_at(what, words):
    with pytest.raises(meanfield.InputError, match=words):
        meanfield.quick(what)


def test_a_step_that_takes_long_says_so(monkeypatch, capfd):
    monkeypatch.setattr(room, "PATIENCE", 0.0)
    with room._said("waits"):
        np.linalg.inv(np.eye(300))
        while "meanfield waits ..." not in capfd.readouterr().err:  # a deadlock if nothing is said
            pass
    monkeypatch.setattr(room, "PATIENCE", 60.0)
    with room._said("waits"):
        pass
    assert capfd.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("family", [*families()], ids=lambda family: family.name)
def test_first_looks_agree(family):
    assert meanfield.quick(family.name).verdict == "AGREES"


@pytest.mark.slow
def test_the_first_look_at_a_rule_agrees():
    assert meanfield.quick(step, rate=0.5).verdict == "AGREES"
