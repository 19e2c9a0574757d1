"""Words of verdicts, and the variables that the comparisons of all families hold."""

from __future__ import annotations

from meanfield.problems.variable import Variable

AGREES, DIFFERS, CANNOT_TELL = VERDICTS = ("AGREES", "DIFFERS", "CANNOT TELL")
"""Words for the outcome of a comparison."""

PAIR = Variable(("pair",), "the two results that are compared: first - second", words=True)

JUDGEMENT = {
    "verdict": Variable(("pair",), "whether the two results agree", words=True, choices=VERDICTS),
    "p_value": Variable(
        ("pair",), "share of comparisons of true pairs that show a difference as unlikely as this", range=(0.0, 1.0)
    ),
    "reason": Variable(("pair",), "what decides it, and what to change", words=True),
    "left_out": Variable(("pair",), "what is not compared, and why", words=True),
}
