"""Bars of forked processes: whatever one of them was doing when it was killed, the others go on."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import meanfield
from meanfield.problems.known_families import families
from meanfield.process.progress import counted, counted_calls, interrupted_after, progress_bar
from meanfield.report import report
from tests import ROOT
from tests.example_problems import feature, features, gaussian, make_problem


def lock():
    """What a bar waits for when it appears."""
    return type(progress_bar(1, "any")).get_lock()


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")


def test_a_fork_that_is_killed_while_it_holds_the_lock_blocks_nobody():
    lock()  # exists before the fork, which would have one of its own
    child = os.fork()
    if not child:
        lock().acquire()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    waiting = threading.Thread(target=lambda: progress_bar(1, "next").close(), daemon=True)
    waiting.start()
    waiting.join(10)
    assert not waiting.is_alive()


def test_a_fork_does_not_wait_for_a_thread_that_it_has_not():
    with lock():
        child = os.fork()
        if not child:
            thread = threading.Thread(target=lambda: (progress_bar(1, "theirs").close(), os._exit(0)))
            thread.start()
            time.sleep(10)
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


METHODS = [
    pytest.param(part, name, id=f"{family.name}-{part.problem.partition(':')[0].split('.')[-2]}-{name}")
    for family in families()
    for part in family.parts
    for name in part.methods
]


@pytest.mark.parametrize(("family", "method"), METHODS)
def test_every_method_shows_its_progress_and_can_be_stopped(family, method):
    """Ctrl-C comes with the first update of a bar, which a method without one would not notice."""
    problem = meanfield.load_problem(family.example_path)
    with interrupted_after(0):
        assert stopped(lambda: meanfield.solve(problem, method))


FILTERS = meanfield.load_problem(ROOT / "data" / "problems" / "nine_points.toml")
TWO = make_problem(features(feature(0.5, gaussian(1.2)), feature(0.2)))
CHANNELS = meanfield.load_problem(ROOT / "data" / "problems" / "two_channels.toml")


@pytest.mark.parametrize(
    "verb",
    [
        lambda: meanfield.explain(meanfield.load_problem(ROOT / "data" / "problems" / "latent_tree.toml")),
        lambda: meanfield.contrastive.phase_portrait(TWO),
        lambda: meanfield.contrastive.best_augmentation(make_problem()),
        lambda: meanfield.contrastive.critical_values(make_problem(), "model.learning_rate", 0.01, 0.1),
        lambda: meanfield.contrastive.collapse_threshold(CHANNELS),
        lambda: meanfield.contrastive.mixing_threshold(CHANNELS),
        lambda: meanfield.contrastive.learning_threshold(CHANNELS),
        lambda: meanfield.contrastive.continue_fixed_points(TWO, "model.learning_rate", 0.02, 0.03, points=3),
        lambda: meanfield.contrastive.continue_stationary_states(
            make_problem(), "model.learning_rate", 0.02, 0.03, points=3
        ),
        lambda: meanfield.alpha_contrastive.continue_critical_points(
            FILTERS, "importance.temperature", 0.5, 0.6, points=3
        ),
        lambda: meanfield.compare(*[meanfield.load(ROOT / "tests" / "compatibility" / "density-2.nc")] * 2),
        lambda: meanfield.hidden_manifold.examine_samples(np.random.default_rng(0).standard_normal((100, 10))),
        lambda: report({"run": meanfield.load(ROOT / "tests" / "compatibility" / "density-2.nc")}),
    ],
)
def test_other_verbs_that_may_take_long_do_so_too(verb):
    with interrupted_after(0):
        assert stopped(verb)


def stopped(verb):
    """Whether Ctrl-C ended a call, or left a result that says so."""
    try:
        return verb().attrs["status"] == "interrupted"
    except KeyboardInterrupt:
        return True


def test_what_is_counted_is_what_was_done():
    calls = []

    def count():
        with counted_calls("any") as counting:
            for x in range(9):
                counting(calls.append)(x)

    with interrupted_after(3), pytest.raises(KeyboardInterrupt):
        count()
    assert calls == [0, 1, 2, 3]
    assert list(counted("abc", "any", "letter")) == ["a", "b", "c"]
