"""Page in a notebook, whose place Python reads and sets; needs anywidget, an extra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets


class Widget(anywidget.AnyWidget):  # type: ignore[misc]
    """Page whose panel that moved last is at a `time`, and at `parameters` of a sweep."""

    _esm: Any = Path(__file__).with_suffix(".js")
    page = traitlets.Unicode().tag(sync=True)
    panel = traitlets.Int(0).tag(sync=True)
    time = traitlets.Float(0.0).tag(sync=True)
    parameters = traitlets.List().tag(sync=True)
