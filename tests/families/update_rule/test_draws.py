"""Several kinds of samples, groups of trained vectors, and views: reference numbers, and what must hold for any."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield
from meanfield.families.update_rule.order_parameters.trajectory import check_order_parameters
from tests.families.update_rule.problems import feature

HERE = "tests.families.update_rule.rules_of_draws:"
LAST_DIGIT = 1.5e-10
"""Error of numbers with ten digits."""


def gaussian(second_moment):
    return {"law": "gaussian", "second_moment": second_moment}


def gan(**tables):
    """GAN of one feature (update_rules.md, section 10.9)."""
    given = {
        "model": {"rule_parameters": {"rate": 0.2, "slow": 0.1}},
        "groups": [{"name": "w"}, {"name": "V"}],
        "features": [{"hidden": gaussian(3.0), "initial_overlap": [0.2, 0.3]}],
        "students": [
            {"group": "w", "initial_norm": 0.8},
            {"group": "V", "initial_norm": 1.1, "initial_overlap": [0.1], "hidden": gaussian(2.5)},
        ],
        "draws": [
            {
                "along": "u",
                "gain": {"w": HERE + "up"},
                "move": {"w": {"w": HERE + "hold"}, "V": {"V": HERE + "hold_generator"}},
            },
            {"along": "V", "gain": {"w": HERE + "down"}},
            {"along": "V", "move": {"V": {"w": HERE + "teach"}}},
        ],
        "time": {"stop": 20.0, "outputs": 5},
        "order_parameters": {"tolerance": 1e-9},
    }
    return meanfield.Problem(family="update_rule", **given | tables)


@pytest.mark.parametrize(
    ("time", "numbers"),
    [
        (5.0, [0.7409281422, 1.7720605491, 1.1125616290, 1.3673809771, 4.4901693175]),
        pytest.param(
            *(20.0, [0.9749820281, 0.1895794436, -0.0447441323, 1.1964602871, 1.1664996641]), marks=pytest.mark.slow
        ),
    ],
)
def test_a_gan_has_its_reference_numbers(time, numbers):
    result = meanfield.solve(gan(time={"stop": time, "outputs": 2}), "order_parameters")
    assert list(result["student_name"].values) == ["w", "V"]
    R, Q = (result[name].sel(time=time).values for name in ("R", "Q"))
    found = [R[1, 0], R[0, 0], Q[0, 1], Q[1, 1], Q[0, 0]]
    assert np.abs(np.array(found) - numbers).max() <= float(result["Q_error"].max()) + LAST_DIGIT


@pytest.mark.slow
def test_a_gan_of_two_features_is_that_of_closed_forms():
    """A generator of two vectors, which moves by arrays."""
    D, Dt, rate, slow = np.diag([3.0, 1.5]), np.diag([2.5, 2.0]), 0.2, 0.1
    P, q, r = np.array([[0.3, 0.1], [0.05, 0.2]]), np.array([0.2, 0.1]), np.array([0.1, 0.05])
    S, z = np.diag([1.1, 0.9]), 0.8

    def velocity(t, x):
        P, q, r, S, z = x[:4].reshape(2, 2), x[4:6], x[6:8], x[8:12].reshape(2, 2), x[12]
        g, gt = D @ q, Dt @ r
        h, L = -np.tanh(z - 1), -np.diag(np.tanh(np.diag(S) - 1))
        square = q @ D @ q + r @ Dt @ r + 2.0 * z
        parts = (
            slow * (np.outer(q, gt) + P @ L),
            rate * (g - P @ gt + q * h),
            rate * (P.T @ g - S @ gt + r * h) + slow * (z * gt + L @ r),
            slow * (np.outer(r, gt) + np.outer(gt, r) + S @ L + L @ S),
            2.0 * rate * (q @ g - r @ gt + z * h) + rate**2 * square,
        )
        return np.concatenate([np.ravel(part) for part in parts])

    start = np.concatenate([P.ravel(), q, r, S.ravel(), [z]])
    known = solve_ivp(velocity, (0.0, 4.0), start, rtol=1e-11, atol=1e-12).y[:, -1]  # digits below the 1e-9 asked for
    features = [{"hidden": gaussian(D[i, i]), "initial_overlap": [q[i], *P[i]]} for i in range(2)]
    students = [{"group": "w", "initial_norm": z}]
    students += [
        {"group": "V", "initial_norm": S[j, j], "initial_overlap": [r[j], 0.0][: j + 1], "hidden": gaussian(Dt[j, j])}
        for j in range(2)
    ]
    draws = [each.model_dump(exclude_none=True) for each in gan().draws]
    draws[0]["move"]["V"] = {"V": HERE + "hold_generators"}
    time = {"stop": 4.0, "outputs": 2}
    last = meanfield.solve(gan(features=features, students=students, draws=draws, time=time), "order_parameters")
    R, Q = (last[name].isel(time=-1).values for name in ("R", "Q"))
    found = np.concatenate([R[1:].T.ravel(), R[0], Q[0, 1:], Q[1:, 1:].ravel(), [Q[0, 0]]])
    assert np.abs(found - known).max() <= 2.0 * float(last["Q_error"].max()) + 1e-9  # closed forms to 1e-10


def two_views(**tables):
    """Contrastive learning with noise of each view (update_rules.md, section 10.10)."""
    covariance = -0.5 * np.sqrt(0.2 * 0.3)
    given = {
        "model": {"rule_parameters": {"rate": 0.05}, "batch_size": 10, "constraint": "sphere"},
        "data": {"signal": "orthogonal"},
        "features": [feature(0.4, hidden={"law": "three_point", "second_moment": 1.5, "fourth_moment": 6.0})],
        "draws": [
            {
                "views": 2,
                "view_covariance": [[0.2, covariance], [covariance, 0.3]],
                "gain": {"s": [HERE + "first", HERE + "second"]},
            }
        ],
        "time": {"stop": 4.0, "outputs": 3},
        "order_parameters": {"tolerance": 1e-9},
    }
    return meanfield.Problem(family="update_rule", **given | tables)


def test_two_noisy_views_are_those_of_the_first_family():
    q = meanfield.solve(two_views(), "order_parameters")["R"].values.ravel()
    assert np.abs(q - [0.4, 0.5739613130, 0.7236222513]).max() < 1e-9  # tolerance, and digits printed
    model = {"activation": "quadratic", "centering": "none", "learning_rate": 0.05, "batch_size": 10}
    contrastive = meanfield.Problem(
        model=model,
        features=two_views().model_dump(exclude_none=True)["features"],
        augmentation={"variance": [0.2, 0.3], "correlation": -0.5},
        time={"stop": 4.0, "outputs": 3},
    )
    assert (
        np.abs(q - meanfield.solve(contrastive, "order_parameters")["q"].values.ravel()).max() < 1e-8
    )  # its tolerance


def oja(draws, **tables):
    given = {
        "model": {"rule_parameters": {"rate": 0.5}},
        "data": {"signal": "spiked", "observed": 0.6},
        "features": [feature(0.3, 2.0)],
        "time": {"stop": 1.0, "outputs": 2},
    }
    return meanfield.Problem(family="update_rule", draws=draws, **given | tables)


def solved(problem):
    return meanfield.solve(meanfield.with_value(problem, "order_parameters.tolerance", 1e-9), "order_parameters")


def test_a_draw_split_into_two_halves_is_a_batch_of_two():
    half = {"gain": {"s": HERE + "half"}}
    split, whole = solved(oja([half, half])), solved(oja([{"gain": {"s": "oja"}, "batch_size": 2}]))
    for name in ("R", "Q"):
        assert np.abs(split[name] - whole[name]).max() < 1e-10  # the same averages: rounding of their sums, and steps


DRAW_OF_MASKS = {"views": 2, "observed": [0.8, 0.5], "gain": {"s": [HERE + "by_second", HERE + "by_first"]}}


def masked_views(**tables):
    """Principal components by two views of a sample, each of which has missing coordinates of its own."""
    model = {"rule_parameters": {"rate": 0.5}, "constraint": "sphere"}
    given = {"model": model, "data": {"signal": "spiked"}, "time": {"stop": 4.0, "outputs": 5}}
    return oja([DRAW_OF_MASKS], **given | tables)


def test_masks_of_views_give_the_closed_form():
    """Known numbers of update_rules.md, section 10.6, which solve its equation."""
    result = solved(masked_views())
    q = result["R"].values.ravel()
    tau, omega, first, second = 0.5, 2.0, 0.8, 0.5
    both = first * second

    def velocity(t, q):
        square = both * (2.0 + 2.0 * both * (1.0 + omega * q**2) + (first + second) * omega * q**2)
        return tau * both * omega * q * (1.0 - q**2) - 0.5 * q * tau**2 / 4.0 * square

    times = result["time"].values
    known = solve_ivp(velocity, (0.0, 4.0), [0.3], t_eval=times, rtol=1e-11, atol=1e-13).y[0]
    assert np.abs(q - known).max() < 1e-9  # the tolerance of the result
    assert np.abs(known[[1, 4]] - [0.4083560003, 0.7511949746]).max() < LAST_DIGIT


def test_sgd_with_masks_of_views_has_the_mean_of_the_limit():
    """With a fixed seed; had it been drawn at random, it would fail in 1 of 1000 cases, and with shares of 0.8."""
    runs = 32
    particles = {"dimension": 600, "replicas": runs, "seed": 3, "method": "plain"}
    problem = masked_views(time={"stop": 2.0, "outputs": 2}, particles=particles)
    R = meanfield.simulate_sgd(problem)["R"].values[:, -1, 0, 0]
    spread = R.std(ddof=1) / np.sqrt(runs)
    limit = solved(problem)["R"].values[-1].item()
    assert abs(R.mean() - limit) < 3.63 * spread  # Student's law with 31 degrees of freedom
    one_share = meanfield.with_value(problem, "draws", [{**DRAW_OF_MASKS, "observed": [0.8, 0.8]}])
    assert abs(R.mean() - solved(one_share)["R"].values[-1].item()) > 10.0 * spread


@pytest.mark.slow
def test_equal_views_are_one_input():
    views = oja([{"views": 2, "gain": {"s": [HERE + "first", HERE + "second"]}}], data={"signal": "spiked"})
    one = oja(None, model={"rule": "ica", "rule_parameters": {"rate": 4.0 * 0.5}}, data={"signal": "spiked"})
    views, one = (
        meanfield.with_value(each, "model.rule_parameters.rate", rate) for each, rate in ((views, 0.02), (one, 0.08))
    )
    for name in ("R", "Q"):
        assert np.abs(solved(views)[name] - solved(one)[name]).max() < 1e-10  # rounding, and steps


def test_a_rule_brings_its_observables_along():
    given = {"features": [{"initial_overlap": 0.2}], "time": {"stop": 1.0, "outputs": 2}}
    model = {"rule_parameters": {"rate": 0.7}}
    one, other = (
        meanfield.solve_order_parameters(meanfield.Problem(family="update_rule", **given, **tables))
        for tables in (
            {"model": model | {"rule": "perceptron"}},
            {"model": model, "draws": [{"gain": {"s": "perceptron"}}]},
        )
    )
    assert list(other["observable_name"].values) == ["error"]
    assert np.array_equal(one["observables"], other["observables"])
    twice = [{"gain": {"s": "perceptron"}, "observables": {"error": HERE + "loss"}}]
    with pytest.raises(meanfield.InputError, match=r"draws\[0\]: two observables have the name 'error'; rename"):
        meanfield.Problem(family="update_rule", **given, model=model, draws=twice)


def test_samples_have_laws_masks_and_observables_of_their_own():
    """Noise alone, half of whose coordinates are seen: w^2 has the mean p eta Q there, and p (p c^2 R^2 + Q) with c."""
    draws = [
        {"name": "real", "gain": {"w": HERE + "up"}, "observables": {"seen": HERE + "loss"}, "along": "u"},
        {"name": "noise", "along": "none", "noise": 3.0, "observed": 0.5, "observables": {"lost": HERE + "loss"}},
    ]
    side = {"threshold": {"start": 0.2, "step": HERE + "threshold_step", "draw": "noise"}}
    tables = {"groups": [{"name": "w", "constraint": "sphere"}], "side": side}
    result = solved(oja(draws, **tables, time={"stop": 3.0, "outputs": 4}))
    R, seen, lost = result["R"].values.ravel(), *result["observables"].values.T
    assert np.abs(seen - 0.6 * (0.6 * 2.0 * R**2 + 1.0)).max() < 1e-8  # errors of R
    assert np.abs(lost - 1.5).max() < 1e-12  # rounding
    v = 1.5 + (0.2 - 1.5) * np.exp(-result["time"].values)
    assert np.abs(result["v"].values[:, 0] - v).max() < 1e-8  # ten times the tolerance


WRONG = {
    "rule and draws": (
        gan,
        {"model": {"rule": "oja", "rule_parameters": {"rate": 0.2, "slow": 0.1}}},
        "model.rule: stands beside .*remove it",
    ),
    "neither": (oja, {"draws": None}, r"model.rule: is missing; name a rule, or add \[\[draws\]\]"),
}


def changed(number, **keys):
    """The GAN with other keys in one of its draws."""
    draws = [each.model_dump(exclude_none=True) for each in gan().draws]
    draws[number] = {key: value for key, value in (draws[number] | keys).items() if value is not None}
    return {"draws": draws}


MISTAKES = {
    "gain for a feature": (changed(0, gain={"u": HERE + "up"}), r"draws\[0\].gain: features are not trained; .*V, w"),
    "unknown group": (changed(0, gain={"x": HERE + "up"}), r"draws\[0\].gain: there is no group 'x'"),
    "moves of nothing": (changed(2, move={"x": {"w": HERE + "teach"}}), r"draws\[2\].move: there is no group 'x'"),
    "moves along nothing": (
        changed(2, move={"V": {"x": HERE + "teach"}}),
        r"draws\[2\].move.V: there are no vectors 'x'",
    ),
    "along nothing": (changed(1, along="x"), r"draws\[1\].along: there are no vectors 'x'; known: V, none, u, w"),
    "along no law": (changed(1, along="w"), r"students\[0\].hidden: is missing, and a sample along 'w' shows it"),
    "nothing reads": (changed(1, gain=None), r"draws\[1\]: nothing reads its samples; add gain, move or observables"),
    "view that is not there": (
        changed(1, views=2, gain={"w": [HERE + "down", HERE + "first"]}),
        r"draws\[1\].gain.w\[0\] reads 'w'; of 2 views it is w1 to w2",
    ),
    "one gain of two": (
        changed(1, views=2),
        r"draws\[1\]: gain.w has 1 function\(s\) for 2 view\(s\); give one for each",
    ),
    "covariance": (changed(1, view_covariance=[[0.1, 0.2]]), r"draws\[1\]: view_covariance is no table of 1 rows of 1"),
    "no covariance": (
        changed(1, views=2, gain={"w": [HERE + "up", HERE + "up"]}, view_covariance=[[0.1, 0.2], [0.2, 0.1]]),
        "view_covariance is no covariance: symmetric",
    ),
    "group twice": ({"groups": [{"name": "w"}, {"name": "V"}, {"name": "w"}]}, r"groups\[2\].name: 'w' is there twice"),
    "group without students": (
        {"groups": [{"name": "w"}, {"name": "V"}, {"name": "x"}]},
        r"groups\[2\]: no student is in 'x'",
    ),
    "group of features": (
        {"groups": [{"name": "w"}, {"name": "V"}, {"name": "u"}]},
        "'u' means something else already",
    ),
    "student of no group": (
        {"students": [{"group": "W"}, {"group": "V"}]},
        r"there is no group 'W'|no student is in 'w'",
    ),
    "misspelt address": (
        changed(1, gain={"w": HERE + "donw"}),
        r"draws\[1\]: gain.w: .*has no 'donw'; did you mean 'down'",
    ),
    "wrong shape": (changed(1, gain={"w": HERE + "two"}), r"draws\[1\].gain.w reads 's'"),
    "moves in a rule": (
        changed(1, gain={"w": "tests.families.update_rule.own_rules:own_oja"}),
        r"draws\[1\]: gain.w = .* has moves along vectors besides",
    ),
    "name taken": ({"data": {"coins": {"w": 0.5}}}, "data.coins: 'w' is also .*; rename one of the two"),
    "side of nothing": (
        {"side": {"b": {"start": 0.0, "step": HERE + "loss", "draw": "x"}}},
        "side.b.draw: no kind of sample has the name 'x'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_in_words(name):
    tables, said = MISTAKES[name]
    with pytest.raises((meanfield.InputError, ValueError)) as caught:
        check_order_parameters(gan(**tables))
    assert re.search(said, str(caught.value).replace("\n", " ")), str(caught.value)


@pytest.mark.parametrize("name", WRONG)
def test_a_rule_stands_beside_no_draws(name):
    made, tables, said = WRONG[name]
    with pytest.raises((meanfield.InputError, ValueError), match=said):
        made(**tables)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["plain", "chain"])
@pytest.mark.parametrize("made", [gan, two_views])
def test_the_mean_of_sgd_is_the_limit(made, method):
    """With a fixed seed; had it been drawn at random, one of the four would fail in 1 of 1000 cases at most."""
    runs = 32 if method == "plain" else 1000
    particles = {"dimension": 500, "replicas": runs, "seed": 3, "method": method}
    problem = made(time={"stop": 2.0, "outputs": 2}, order_parameters={"tolerance": 1e-6}, particles=particles)
    limit, sgd = (meanfield.solve(problem, name).isel(time=-1) for name in ("order_parameters", "particles"))
    for name in ("R", "Q"):
        spread = sgd[name].std("replica", ddof=1).values / np.sqrt(runs)
        away = np.abs(sgd[name].mean("replica") - limit[name]).values
        assert (away <= 5.0 * spread + 1e-9).all()  # 2e-5 of Student's law with 31 degrees of freedom, of 12 numbers


def test_keys_of_draws_follow_phases():
    """As those of all samples do, which they stand for."""
    second = {"data.noise": 2.0, "model.batch_size": 3}, {"draws[0].noise": 2.0, "draws[0].batch_size": 3}
    one, other = (
        meanfield.solve_order_parameters(
            oja([{"gain": {"s": "oja"}}], phases=[{"stop": 0.5}, {"stop": 1.0, "set": changes}])
        )
        for changes in second
    )
    for name in ("R", "Q"):
        assert np.array_equal(one[name], other[name])
    with pytest.raises(ValueError, match=r"'draws\[0\].samples' stays the same in all phases"):
        oja([{"gain": {"s": "oja"}}], phases=[{"stop": 1.0, "set": {"draws[0].samples": 2}}])
