"""What the studies of two features decide, on their numbers without SGD, and their figures can be drawn."""

import pytest

VERDICTS = {
    "figure_3a": {
        "all stable fixed points lie on the axes: only one feature is learnt": True,
        "the fixed point with both overlaps is unstable": True,
        "Q1 = Q2 = 0 is an unstable fixed point": True,
        "the attraction region of the second feature is larger than that of the first": True,
    },
    "figure_3b": {
        "the feature with the highest second moment is not necessarily the one that is learnt": True,
        "only one feature is learnt, the other is discarded": True,
        "the first feature grows at first, where the second is learnt in the end": True,
    },
    "figure_7": {
        "equal laws give mirror images of dQ1/dt and dQ2/dt": True,
        "with Gaussian c and m2 = 1, m4 = 3, m6 = 15 a feature can be learnt": False,
        "with unequal laws both overlaps grow near the origin": True,
        "the Gaussian law with m2 = 1.2 has m6 = 25.95": False,
    },
    "figure_9": {
        "four fixed points in total, (a)": False,
        "the fixed point near (0, 0) is unstable, (a)": True,
        "the fixed point with both overlaps is unstable, (a)": True,
        "the fixed points near (1, 0) and (0, 1) are stable, (a)": True,
        "the attraction region of feature 2 is larger than that of feature 1, (a)": True,
        "four fixed points in total, (b)": True,
        "the fixed point near (0, 0) is unstable, (b)": True,
        "the fixed point with both overlaps is unstable, (b)": True,
        "the fixed points near (1, 0) and (0, 1) are stable, (b)": True,
        "the attraction region of feature 2 is larger than that of feature 1, (b)": True,
        "from a random start near the origin features are learnt in proportion to their regions, (b)": False,
    },
}

EQUAL_LAWS = {
    "four fixed points in total, gaussian, m2 = 1.0": False,
    "four fixed points in total, gaussian, m2 = 1.1": False,
    "the fixed point near (0, 0) is stable at m2 = 1.0 and unstable at m2 = 1.1, gaussian": True,
    "the fixed point near (0.5, 0.5) is unstable in both cases, gaussian": False,
    "the fixed points near (1, 0) and (0, 1) are stable in both cases, gaussian": False,
    "four fixed points in total, three-point, m2 = 1.0": False,
    "four fixed points in total, three-point, m2 = 1.1": True,
    "the fixed point near (0, 0) is stable at m2 = 1.0 and unstable at m2 = 1.1, three-point": True,
    "the fixed point near (0.5, 0.5) is unstable in both cases, three-point": True,
    "the fixed points near (1, 0) and (0, 1) are stable in both cases, three-point": True,
    "(S-50) as printed has four fixed points with the caption's Gaussian laws, m2 = 1.1": True,
}


def check(study, name, verdicts):
    found = study(name)
    numbers = found.theory()
    assert {statement.text: statement.holds for statement in found.judge(numbers)} == verdicts
    found.draw(numbers)


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(study, name):
    check(study, name, VERDICTS[name])


@pytest.mark.slow
def test_verdicts_on_equal_laws(study):
    check(study, "figure_8", EQUAL_LAWS)
