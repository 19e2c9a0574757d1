"""What the studies decide, on their numbers without SGD."""

import pytest

VERDICTS = {
    "figure_2b": {
        "Q = 0 is stable at m2 = 0.9": True,
        "Q = 0 is stable at m2 = 1.0": True,
        "Q = 0 is unstable at m2 = 1.1": True,
        "no stable state near Q = 1 at m2 = 0.9": True,
        "a stable state near Q = 1 at m2 = 1.0": True,
        "a stable state near Q = 1 at m2 = 1.1": True,
    },
}


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(study, name):
    found = study(name)
    statements = found.judge(found.theory())
    assert {statement.text: statement.holds for statement in statements} == VERDICTS[name]
