"""Runs that are interrupted or killed, and go on: the same bits as if nothing had happened."""

import numpy as np
import pytest

import meanfield
from meanfield.ensembles import ensemble
from meanfield.ensembles.checkpoint import Checkpoint
from meanfield.errors import InputError
from meanfield.families.contrastive.sgd.steppers import Chain, Plain, Projected
from tests.example_problems import feature, features, make_problem

CLASSES = {"plain": Plain, "projected": Projected, "chain": Chain}
MIXTURE = '{ law = "gaussian_mixture", means = [-1.0, 1.0], variances = [0.1, 0.5], probabilities = [0.4, 0.6] }'
COMMON = (
    'model = { activation = "tanh", centering = "batch", learning_rate = 2.0, batch_size = 3 }',
    "augmentation = { variance = [0.3, 0.1], correlation = 0.4 }",
    features(
        feature(0.4, '{ law = "student_t", degrees_of_freedom = 6.0 }'),
        feature(0.3, MIXTURE),
    ),
    "time = { stop = 4.0, outputs = 6 }",
    "particles = { dimension = 65, replicas = 5, seed = 3, escape_overlap = 0.6 }",
)  # fmt: skip
WEIGHTS = ("particles.snapshots = [0.0, 2.4, 4.0]", 'prior = { name = "quartic", strength = 0.5 }')
CASES = {
    "plain": WEIGHTS,
    "projected": WEIGHTS,
    "projected, l2": ('prior = { name = "l2", strength = 0.5 }',),
    "chain": ('prior = { name = "l2", strength = 0.5 }',),
    "chain, statistics": ("particles.record = 'statistics'", "particles.replicas = 40"),
    "plain, statistics": ("particles.record = 'statistics'",),
}


def problem_of(case, *more):
    return make_problem(*COMMON, f"particles.method = '{case.partition(',')[0]}'", *CASES[case], *more)


class Interrupting:
    """Interrupts the run at its n-th call of `advance`, as Ctrl-C would."""

    def __init__(self, monkeypatch, kind, calls):
        self.left, advance = calls, kind.advance

        def counted(stepper, first, steps):
            advance(stepper, first, steps)
            self.left -= 1
            if self.left == 0:
                self.running._stop.set()

        run = ensemble.Ensemble.run

        def remembered(running, workers):
            self.running = running
            return run(running, workers)

        monkeypatch.setattr(kind, "advance", counted)
        monkeypatch.setattr(ensemble.Ensemble, "run", remembered)


def in_short_calls(monkeypatch):
    """So that states fall between output times, too."""
    monkeypatch.setattr(ensemble, "FIRST_CALL", 23)
    monkeypatch.setattr(ensemble._Pace, "look", lambda pace, steps: None)


def same(first, second):
    assert set(first.variables) == set(second.variables)
    for name in first.variables:
        assert np.array_equal(first[name], second[name], equal_nan=True), name


@pytest.mark.parametrize(
    "case",
    [
        # what is kept of them is what is kept of a case with the same steps, or with the same records
        pytest.param(case, marks=pytest.mark.slow if case in ("projected, l2", "plain, statistics") else ())
        for case in CASES
    ],
)
def test_a_run_that_is_interrupted_again_and_again_gives_the_same_bits(case, tmp_path, monkeypatch):
    whole = meanfield.simulate_sgd(problem_of(case))
    assert whole.status == "complete"
    in_short_calls(monkeypatch)
    folder, parts = tmp_path / "run", 0
    while True:
        with monkeypatch.context() as patched:
            Interrupting(patched, CLASSES[case.partition(",")[0]], calls=11)
            part = meanfield.simulate_sgd(problem_of(case), workers=2, record=Checkpoint(folder))
        if part.status != "interrupted":
            break
        parts += 1
    assert parts > 3
    assert part.status == "complete"
    same(part, whole)


def test_a_complete_run_is_not_repeated(tmp_path, monkeypatch):
    whole = meanfield.simulate_sgd(problem_of("chain"), record=Checkpoint(tmp_path / "run", save_every=0.0))
    monkeypatch.setattr(Chain, "advance", None)
    same(meanfield.simulate_sgd(problem_of("chain"), record=Checkpoint(tmp_path / "run")), whole)


def test_a_blow_up_is_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr("meanfield.ingredients.priors.PriorSettings.check_pull", lambda *_: None)
    lines = ('prior = { name = "quartic", strength = 1e200 }', "particles.snapshots = []")
    first = meanfield.simulate_sgd(problem_of("projected", *lines), record=Checkpoint(tmp_path / "run", save_every=0.0))
    assert first.status.startswith("failed: at t = 0: the weights of replica 0 are no longer finite; lower")
    again = meanfield.simulate_sgd(problem_of("projected", *lines), record=Checkpoint(tmp_path / "run"))
    assert again.status == first.status
    same(first, again)


@pytest.mark.parametrize("name", ["q", "r", "weights", "U", "escape", "winner", "failed"])
def test_no_result_that_was_kept_may_change(name, tmp_path):
    record = Checkpoint(tmp_path / "run", save_every=0.0)
    meanfield.simulate_sgd(problem_of("projected"), record=record)
    kept = np.load(record.folder / f"{name}.npy", mmap_mode="r+")
    kept.flat[kept.size // 2] += 1
    kept.flush()
    with pytest.raises(InputError, match=r"run: is damaged \(its arrays are not what was written there\)"):
        meanfield.simulate_sgd(problem_of("projected"), record=Checkpoint(record.folder))
