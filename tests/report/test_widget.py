"""Widget of notebooks: its traits, and in a browser the way from page to model and back."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from meanfield.errors import InputError
from meanfield.report import page
from meanfield.report.page import Page, rendered

COURSE = {"kind": "course", "title": "q", "curves": [{"label": "q", "colour": 0, "dash": 0, "t": [0, 1], "y": [0, 1]}]}
POINT = {"times": [0.0, 1.0], "panels": [COURSE]}
AXES = {"numbers": ([0.1, 0.2, 0.4], 0.11, 0.35, 0.4), "text": (["tanh", "quadratic", "relu"], "tanh", "relu", "relu")}
HOST = """<body><script>
const state = {page: %s, panel: 0, time: 0.7, parameters: [%s]}, seen = [];
const acts = {"change:time": [], "change:parameters": []};
const model = {get: key => state[key], on: (name, act) => acts[name].push(act)};
model.off = (name, act) => { acts[name] = acts[name].filter(each => each !== act); };
model.save_changes = () => seen.push([state.panel, state.time, state.parameters]);
model.set = (key, value) => {
  const same = JSON.stringify(state[key]) === JSON.stringify(value);
  state[key] = value;
  if (!same) (acts["change:" + key] || []).forEach(act => act());
};
import(URL.createObjectURL(new Blob([%s], {type: "text/javascript"}))).then(made => {
  const closed = [1, 2].map(() => made.default.render({model, el: document.body}));
  setTimeout(() => { seen.push("set"); model.set("time", 0.2); model.set("parameters", [%s]); }, 700);
  setTimeout(() => { seen.push("closed"); closed[0](); model.set("time", 0.8); }, 1100);
  setTimeout(closed[1], 1500);
  setTimeout(() => { document.body.innerHTML = "<output>" + JSON.stringify([seen, acts]) + "</output>"; }, 1600);
});
</script></body>"""


def test_python_reads_and_sets_the_place_of_a_page():
    shown = Page("<p>page</p>").widget()
    assert (shown.page, shown.time, shown.parameters) == ("<p>page</p>", 0.0, [])
    assert {"page", "panel", "time", "parameters", "_esm"} <= set(shown.keys)  # what goes to the browser
    shown.time, shown.parameters = 0.5, ["relu", 0.1]
    assert (shown.get_state()["time"], shown.get_state()["parameters"]) == (0.5, ["relu", 0.1])


def test_where_there_are_no_widgets_the_command_that_installs_them_is_said(monkeypatch):
    monkeypatch.setattr(page, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"pip install 'meanfield-dynamics\[widget\]'"):
        Page("").widget()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
@pytest.mark.parametrize("axis", AXES)
def test_a_browser_moves_the_model_and_the_model_the_page(axis, tmp_path):
    """Of two views, which end at the place that Python set before they were there, at one that it sets, and closed."""
    values, *places = AXES[axis]
    sweep = {"axes": [{"label": "axis", "values": values}], "points": [POINT] * 3}
    before, put, reached = places
    script = Path(page.__file__).with_name("widget.js").read_text(encoding="utf-8")
    moved = rendered("explore.html", title="sweep", names=["sweep"], motions=[sweep])
    host = tmp_path / "host.html"
    filled = (json.dumps(each).replace("</", "<\\/") for each in (moved, before, script, put))
    host.write_text(HOST % tuple(filled), encoding="utf-8")
    words = (
        "chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr --virtual-time-budget=4000 --dump-dom"
    )
    command = [*words.split(), "--disable-features=IsolateSandboxedIframes"]  # whose time would be another one
    command += [f"--user-data-dir={tmp_path / 'profile'}", host.as_uri()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    seen, acts = json.loads(unescape(re.search("<output>(.*)</output>", ended.stdout)[1]))
    start, end, last = [0, 1.0, [values[0]]], [0, 0.0, [reached]], [0, 1.0, [reached]]  # each view says it once
    assert seen == [start, start, "set", end, end, "closed", last]
    assert not any(acts.values())
    assert "CONSOLE" not in ended.stderr
