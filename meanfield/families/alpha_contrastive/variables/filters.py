"""Variables of filters and of networks of them, which several methods share."""

from __future__ import annotations

from meanfield.problems.variable import Variable

FILTERS = {
    "w": Variable(("time", "coordinate"), "filter w, of length 1", range=(-1.0 - 1e-9, 1.0 + 1e-9), gaps="never"),
}
