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
SWEEP = {"axes": [{"label": "tau", "values": [0.1, 0.2, 0.4]}], "points": [POINT] * 3}
HOST = """<body><script>
const state = {page: %s, panel: 0, time: 0.7, parameters: [0.11]}, acts = {}, seen = [];
const model = {get: key => state[key], on: (name, act) => { acts[name] = act; }};
model.save_changes = () => seen.push([state.panel, state.time, state.parameters]);
model.set = (key, value) => { state[key] = value; (acts["change:" + key] || (() => 0))(); };
import(URL.createObjectURL(new Blob([%s], {type: "text/javascript"}))).then(made => {
  made.default.render({model, el: document.body});
  setTimeout(() => model.set("parameters", [0.35]), 700);
  setTimeout(() => model.set("time", 0.8), 1000);
  setTimeout(() => { document.body.innerHTML = "<output>" + JSON.stringify(seen) + "</output>"; }, 1500);
});
</script></body>"""


def test_python_reads_and_sets_the_place_of_a_page():
    pytest.importorskip("anywidget")
    shown = Page("<p>page</p>").widget()
    assert (shown.page, shown.time, shown.parameters) == ("<p>page</p>", 0.0, [])
    assert {"page", "panel", "time", "parameters", "_esm"} <= set(shown.keys)  # what goes to the browser
    shown.time, shown.parameters = 0.5, [0.1]


def test_where_there_are_no_widgets_the_command_that_installs_them_is_said(monkeypatch):
    monkeypatch.setattr(page, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"pip install 'meanfield-dynamics\[widget\]'"):
        Page("").widget()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_browser_moves_the_model_and_the_model_the_page(tmp_path):
    script = Path(page.__file__).with_name("widget.js").read_text(encoding="utf-8")
    moved = rendered("explore.html", title="sweep", names=["sweep"], motions=[SWEEP])
    host = tmp_path / "host.html"
    host.write_text(HOST % tuple(json.dumps(each).replace("</", "<\\/") for each in (moved, script)), encoding="utf-8")
    words = (
        "chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr --virtual-time-budget=4000 --dump-dom"
    )
    command = [*words.split(), "--disable-features=IsolateSandboxedIframes"]  # whose time would be another one
    command += [f"--user-data-dir={tmp_path / 'profile'}", host.as_uri()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    seen = json.loads(unescape(re.search("<output>(.*)</output>", ended.stdout)[1]))
    assert seen == [[0, 0.0, [0.2]], [0, 0.0, [0.4]], [0, 1.0, [0.4]]]  # the middle point, and what was set
    assert "CONSOLE" not in ended.stderr
