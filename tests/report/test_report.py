"""The page as a browser reads it."""

import contextlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.families.contrastive import FAMILY
from meanfield.problems.file import format_problem, parse_problem
from meanfield.report import explore, report
from meanfield.report import page as report_page
from meanfield.report.content import content_of
from meanfield.report.key_numbers import of_particles, of_the_limit
from meanfield.report.page import pictures_of, rendered
from meanfield.results.result import Result
from meanfield.results.text import with_error
from tests.example_problems import SMALL

UNMADE = "data:image/png;base64,"
"""Source of a figure of which no file is made."""

VOID = {"meta", "img", "br", "link", "input", "hr"}
OTHER = SMALL.replace("initial_overlap = 0.5", "initial_overlap = 0.4")


class Page(HTMLParser):
    """Elements, texts and ids; refuses tags that are not closed in order, and what shuts out some readers.

    These are the checks of browsers' audits of accessibility that can be made without one.
    """

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.elements, self.texts, self.title = [], [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []
        self.audit()

    def audit(self):
        assert len(set(self.ids)) == len(self.ids)
        html, viewport = self.elements[0], {"name": "viewport", "content": "width=device-width, initial-scale=1"}
        assert html == ("html", {"lang": "en"})
        assert ("meta", viewport) in self.elements
        assert self.title
        levels = [int(tag[1]) for tag, _ in self.elements if re.fullmatch("h[1-6]", tag)]
        assert levels.count(1) == 1
        assert all(below <= above + 1 for above, below in pairwise([0, *levels]))
        for tag, attributes in self.elements:
            assert not any(name.startswith("on") for name in attributes)
            assert attributes.get("src", "data:").startswith("data:")
            assert attributes.get("href", "#").removeprefix("#") in ["", *self.ids]
            assert tag not in ("link", "iframe", "object", "base", "form")
            assert tag != "img" or attributes["alt"]
            assert tag != "figure" or attributes["tabindex"] == "0"  # narrow screens scroll it
            assert tag not in ("input", "button") or attributes["aria-label"]

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        self.title += data * (self.open[-1:] == ["title"])

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def sweep_of(result):
    """A sweep over two axes, one point of which failed."""
    axes = {
        "learning_rate": ("model.learning_rate", [0.01, 0.02, 0.04]),
        "strength": ("prior.strength", [0.0, 1.0]),
    }
    coordinates = {
        dim: (dim, values, {"key": key, "long_name": key, "scale": "linear"}) for dim, (key, values) in axes.items()
    }
    status = np.full((3, 2), "complete", dtype=object)
    status[2, 1] = "failed: at t = 1: it blew up; lower <b>tau</b>"
    similarity = np.array([[0.9, 0.8], [0.5, 0.4], [0.0, np.nan]])
    variables = {
        name: (tuple(axes), values, FAMILY.all_variables[name].attributes)
        for name, values in (
            ("status", status.astype(str)),
            ("similarity", similarity),
            ("least_similarity", similarity),
        )
    }
    return xr.Dataset(variables, coordinates, result.attrs | {"method": "sweep"})


@pytest.fixture(scope="module")
def results():
    """A result of every method."""
    problem, pair, quiet, channels, cells = map(parse_problem, (SMALL, TWO, QUIET, CHANNELS, CELLS))
    density, sgd = meanfield.solve_density(problem), meanfield.simulate_sgd(problem)
    ensemble = parse_problem(SMALL.replace('method = "plain"', 'method = "chain"\nrecord = "statistics"'))
    found = {
        "density": density,
        "particles": sgd,
        "order_parameters": meanfield.solve_order_parameters(problem),
        "ensemble": meanfield.simulate_sgd(ensemble),
        "comparison": meanfield.compare(density, sgd),
        "stationary": meanfield.find_stationary_states(problem),
        "dynamics": meanfield.contrastive.analyse_dynamics(quiet),
        "continuation": meanfield.contrastive.continue_stationary_states(
            quiet, "model.learning_rate", 0.04, 0.05, points=2
        ),
        "fixed_point_branches": meanfield.contrastive.continue_fixed_points(
            quiet, "model.learning_rate", 0.04, 0.05, points=2
        ),
        "portrait": meanfield.contrastive.phase_portrait(pair),
        "limit_particles": meanfield.solve_density(channels),
        "support_recovery": meanfield.support_recovery(density, 0.5),
        "joint_density": meanfield.contrastive.solve_joint_density(cells)[1],
        "fit": meanfield.fit(problem, sgd, ["model.learning_rate"]),
        "sweep": sweep_of(density),
    }
    assert found.keys() == FAMILY.all_kinds.keys()
    return found


QUIET = SMALL.replace("1.1, fourth_moment = 6.05", "0.9, fourth_moment = 1.0")
"""Problem in which nothing grows and q = 0 is all there is, so that it is analysed quickly."""

CHANNELS = """
title = "channels"
model = { activation = "quadratic", learning_rate = 0.05, batch_size = 4, channels = 2 }
features = [{ hidden = { law = "gaussian" }, initial_overlap = [0.5, 0.3] }]
time = { stop = 1.0, outputs = 3 }
density = { scheme = "particles", tolerance = 1e-2 }
"""

CELLS = CHANNELS.replace('scheme = "particles", tolerance = 1e-2', "feature_nodes = 5")

TWO = SMALL.replace("[time]", '[[features]]\nhidden = { law = "gaussian" }\ninitial_overlap = 0.2\n[time]')


@pytest.fixture
def blank(monkeypatch):
    """Pages without figures, which take most of the time."""
    monkeypatch.setattr("meanfield.report.page._data", lambda *_: UNMADE)


@contextlib.contextmanager
def not_laid_out(figure, *_):
    figure.set_layout_engine(None)
    yield


def leave_out_layouts(patch):
    """Figures without their two layouts, each of which takes as long as a file; tests of plotting look at them."""
    patch.setattr("meanfield.plotting.panels._lay_out", lambda _: None)
    patch.setattr("meanfield.report.page.laid_out", not_laid_out)


@pytest.fixture
def unsaved(monkeypatch):
    """Pages whose figures are drawn, which is where texts are parsed, and of which no files are made."""

    def drawn(figure, _):
        with not_laid_out(figure):
            figure.draw_without_rendering()
        return "data:,"

    leave_out_layouts(monkeypatch)
    monkeypatch.setattr("meanfield.report.page._data", drawn)


@pytest.fixture(scope="module")
def page(results):
    """A page of all results, with files of its first two figures: a bitmap, and what is small, a vector graphic.

    The density is too large for a page of so many as a vector graphic, and as a bitmap in the first of two resolutions.
    The contract of families draws and saves a figure of every method.
    """
    figures, data = [], report_page._data

    def some(figure, share):
        figures.append(figure)
        return data(figure, share) if len(figures) <= 2 else UNMADE

    with pytest.MonkeyPatch.context() as patch:
        leave_out_layouts(patch)
        patch.setattr("meanfield.report.page.RESOLUTIONS", (144, 72))
        patch.setattr("meanfield.report.page._data", some)
        return report(results)


def test_page_is_well_formed_and_self_contained(page):
    parsed = Page(page)
    sources = [attributes["src"] for tag, attributes in parsed.elements if tag == "img"]
    bitmap, vector = (source for source in sources if source != UNMADE)
    assert bitmap.startswith("data:image/png;base64,iVBOR")
    assert vector.startswith("data:image/svg+xml;base64,PD94")
    assert len(sources) * max(len(bitmap), len(vector)) < 3e6  # if all were as large as these
    assert len(page.encode()) < 3e6
    assert [tag for tag, _ in parsed.elements].count("script") == 2  # our own and its data, neither from anywhere
    assert "@import" not in page
    assert "url(" not in page


def test_colours_of_text_stand_out_from_what_is_behind_them():
    """By 4.5 in contrast, which WCAG 2.1 asks for, in the light and the dark theme."""
    style, themes = rendered("explore.html", title="a", names=["a"], motions=[]), []
    for block in re.findall(r":root {\s+(--text: .*?)\s+}", style, re.DOTALL)[:2]:
        themes.append(dict(re.findall(r"--([\w-]+): #(\w{6});", block)))
    behind = dict.fromkeys(("text", "soft", "accent", "bad"), ("page", "card"))
    behind |= {name: (*behind.get(name, ()), f"{name}-bg") for name in ("good", "warn", "bad")}
    assert len(themes) == 2
    for colours in themes:
        for name, others in (behind | {"text": ("page", "card", "good-bg", "warn-bg", "bad-bg")}).items():
            for other in others:
                light, dark = sorted((luminance(colours[name]), luminance(colours[other])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, other)


def luminance(colour):
    """Relative luminance of sRGB, as WCAG 2.1 defines it."""
    shares = np.array([int(colour[k : k + 2], 16) for k in (0, 2, 4)]) / 255.0
    return np.where(shares <= 0.03928, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def test_every_method_has_its_words_numbers_and_figure(page, results):
    parsed = Page(page)
    for method, kind in FAMILY.all_kinds.items():
        assert kind.title in parsed.text
        described = [a["alt"] for tag, a in parsed.elements if tag == "img" and a["alt"].startswith(f"{method}:")]
        assert described or method == "comparison"
    q = float(results["order_parameters"]["q"][-1, 0])
    assert f"{q:.6g}" in parsed.text
    assert "solve_density" not in parsed.text
    assert "density - particles" in parsed.text
    assert "in standard errors" in parsed.text
    assert "chance: up to" in parsed.text
    assert "CANNOT TELL" in parsed.text  # three runs are too few
    assert "6 points: 5 complete, 1 failed" in parsed.text
    assert "1 failed: at t = 1: it blew up; lower <b>tau</b>" in parsed.text


def test_results_of_other_problems_have_sections_of_their_own(results, blank):
    other = meanfield.solve_order_parameters(parse_problem(OTHER))
    text = Page(report({"one": results["order_parameters"], "other": other})).text
    assert "2 problems, 2 results" in text
    assert "features[0].initial_overlap = 0.5 against 0.4" in text
    assert "All results together" not in text
    assert "small, features[0].initial_overlap = 0.5" in text
    pages = [dataset.assign_attrs(problem=untitled(dataset)) for dataset in (results["order_parameters"], other)]
    moving = Page(explore(dict(zip("ab", pages, strict=True)))).text
    assert "Untitled problem, features[0].initial_overlap = 0.5" in moving
    assert "Untitled problem, features[0].initial_overlap = 0.4" in moving


def untitled(dataset):
    return dataset.attrs["problem"].replace('title = "small"', "")


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (
            "failed: at t = 0.5: it blew up; lower <b>tau</b>",
            "This run failed at t = 0.5: it blew up; lower <b>tau</b>",
        ),
        ("interrupted", "This run was interrupted."),
    ],
)
def test_runs_that_did_not_end_say_so_and_show_what_there_is(results, blank, status, shown):
    broken = results["order_parameters"].copy(deep=True).assign_attrs(status=status)
    for name in ("q", "g", "Lambda", "q_covariance"):
        broken[name][2:] = np.nan
    assert "overlap q at t = 0.5" in Page(report({"broken": broken})).text
    assert pictures_of(Result.of(broken))
    broken["q"][:] = np.nan
    assert pictures_of(Result.of(broken)) == []
    assert shown in Page(report({"broken": broken})).text


def test_warnings_of_complete_runs_are_shown_and_are_text(results, blank):
    warned = results["order_parameters"].assign_attrs(warning="condensation: <b>few</b> weights")
    assert "Warning: condensation: <b>few</b> weights." in Page(report({"warned": warned})).text
    assert "Warning:" not in Page(report({"silent": results["order_parameters"]})).text


def test_words_of_a_file_are_text_and_nothing_that_it_names_is_opened(results, unsaved, tmp_path, monkeypatch):
    (tmp_path / "spy.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    evil = "<script>alert(1)</script> $\\frac{ \x00 \udcff"
    problem = results["particles"].attrs["problem"].replace('"quadratic"', '"spy:<i>f"').replace('"none"', '"spy:g"')
    problem = problem.replace('title = "small"', 'title = "<script>alert(1)</script> $x"')
    problem = problem.replace('centering = "spy:g"', 'centering = "none"')
    hostile = {
        name: results[name].assign_attrs(title=evil, problem=problem, provenance=f"no JSON {evil}")
        for name in ("particles", "stationary")
    }
    for dataset in hostile.values():
        dataset["q" if "q" in dataset else "q_mean"].attrs["long_name"] = evil
    text = report({f"{name} <script> $": dataset for name, dataset in hostile.items()})
    parsed = Page(text)
    assert [tag for tag, _ in parsed.elements].count("script") <= 2  # our own and its data
    assert "<script>alert" not in text
    assert "<script>alert(1)</script> $x" in parsed.text
    assert "'spy:<i>f' (a user's own, not looked up)" in parsed.text


def moved_through(page):
    """What a page moves through."""
    return json.loads(page.partition('id="data">')[2].partition("</script>")[0])


def test_a_page_to_move_through_has_a_frame_for_each_time_with_its_share_of_chance(results):
    density, sgd = results["density"], results["particles"]
    (motion,) = moved_through(explore({"density": density, "SGD": sgd, "comparison": results["comparison"]}))
    assert motion["times"] == density["time"].values.tolist()
    q, weights = motion["panels"][0], next(panel for panel in motion["panels"] if panel["title"] == "all weights")
    assert [curve["label"] for curve in q["curves"]] == ["density", "SGD"]
    exact = density["q"].values[:, 0]
    assert np.abs(np.array(q["curves"][0]["y"]) - exact).max() <= 0.5e-2 * np.ptp(exact)  # rounded to a thousandth
    masses = np.array(weights["frames"]).sum(axis=1) * np.diff(weights["w"]).mean()
    assert np.abs(masses - 1.0).max() < 5e-3  # 6e-4 lies outside, and digits
    assert sorted(map(int, weights["bars"])) == np.searchsorted(motion["times"], sgd["snapshot_time"]).tolist()
    bars = weights["bars"][str(len(motion["times"]) - 1)]
    assert len(bars["edges"]) == len(bars["y"]) + 1
    assert (np.array(bars["low"]) <= bars["high"]).all()
    (pair,) = motion["pairs"]
    assert pair["verdict"] == results["comparison"]["verdict"].item()
    assert all(share >= 0.0 for _, share in filter(None, pair["frames"]))


def test_a_sweep_has_a_slider_for_each_axis_and_says_why_points_failed(results):
    (motion,) = moved_through(explore({"sweep": results["sweep"]}))
    assert [axis["values"] for axis in motion["axes"]] == [[0.01, 0.02, 0.04], [0.0, 1.0]]
    assert [point.get("reason") for point in motion["points"]] == [None] * 5 + [results["sweep"]["status"].values[2, 1]]
    assert motion["map"]["values"] == [0.9, 0.8, 0.5, 0.4, 0.0, None]


def test_what_no_page_moves_through_is_refused(results, blank, monkeypatch):
    with pytest.raises(meanfield.InputError, match=r"none of the results is in time or a sweep; .* meanfield report"):
        explore({"stationary": results["stationary"]})
    cube = results["sweep"].expand_dims(third=[1.0])
    cube["third"].attrs = cube["strength"].attrs | {"key": "time.stop"}
    with pytest.raises(meanfield.InputError, match=r"the sweep has 3 axes .*; select values of the others first"):
        explore({"sweep": cube})
    assert len(moved_through(explore({"sweep": cube.isel(third=0)}))[0]["points"]) == 6  # the remedy
    monkeypatch.setattr("meanfield.report.page.MOST_BYTES", 1000)
    for make in (explore, report):
        with pytest.raises(meanfield.InputError, match=r"would have 0\.1 MB, and at most 0\.001 open well; give fewer"):
            make({"density": results["density"]})


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
@pytest.mark.parametrize("time", [0.0, 1.0])
def test_a_browser_moves_to_the_time_in_the_address(results, tmp_path, time):
    page = tmp_path / "page.html"
    page.write_text(explore({"density": results["density"], "SGD": results["particles"]}), encoding="utf-8")
    words = (
        "chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr --virtual-time-budget=2000 --dump-dom"
    )
    command = [*words.split(), f"--user-data-dir={tmp_path / 'profile'}", f"{page.as_uri()}#t={time}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert f"<output>t = {time:g}</output>" in ended.stdout
    assert 'class="curve"' in ended.stdout
    assert "CONSOLE" not in ended.stderr


def test_foreign_results_are_refused_by_name(results):
    with pytest.raises(meanfield.InputError, match="0 results given"):
        report({})
    for make in (report, explore):
        with pytest.raises(meanfield.InputError, match=r"results = .*: give a dict of labels and results"):
            make([results["density"]])
    with pytest.raises(meanfield.InputError, match=r"page.txt: a report is a page of HTML"):
        results["density"].meanfield.report("page.txt")
    with pytest.raises(meanfield.InputError, match="other: not a result of meanfield"):
        report({"other": results["density"].drop_attrs()})
    with pytest.raises(meanfield.InputError, match=r"other: .*not a TOML file"):
        report({"other": results["density"].assign_attrs(problem="[")})


def test_standard_errors_are_those_of_the_replicas(results):
    q = results["particles"]["q"].values[:, -1, 0]
    numbers = dict(content_of(Result.of(results["particles"])).numbers)
    assert numbers["overlap q at t = 1, mean and standard error"] == with_error(q.mean(), q.std(ddof=1) / np.sqrt(3))
    numbers = dict(content_of(Result.of(results["density"])).conserved)
    assert float(numbers["total probability, largest |mass - 1|"]) < 1e-12  # rounding


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (0.701312, 0.00042, "0.70131 ± 0.00042"),
        (0.5, 1e-9, "0.5000000000 ± 1.0e-09"),
        (123.456, 25.0, "123 ± 25"),
        (0.5, np.nan, "0.5"),
        (0.5, 0.0, "0.5 ± 0"),
        (np.nan, 0.1, "not finite"),
        (-0.0, np.nan, "0"),
    ],
)
def test_numbers_have_the_digits_that_their_errors_leave(value, error, shown):
    assert with_error(value, error) == shown


def test_the_problem_can_be_taken_from_the_page(page):
    parsed = Page(page)
    stored = next(text for text in parsed.texts if text.startswith("title ="))
    assert format_problem(parse_problem(stored)) == stored


def test_key_numbers_that_are_cut_say_so(results):
    """Of seven channels and two features 12 of 14 overlaps are listed, of M 12 of 21 off its diagonal."""
    shapes = {"q": (2, 7), "M": (7, 7), "Lambda": (7, 7)}
    dims = {"q": ("feature", "channel"), "M": ("channel", "channel_"), "Lambda": ("channel", "channel_")}
    limit = xr.Dataset({name: (("time", *dims[name]), np.ones((1, *shape))) for name, shape in shapes.items()})
    cut = {name: value for name, value in of_the_limit(limit.assign_coords(time=[1.0])) if "entries" in name}
    assert cut == {
        "entries of overlap q": "12 of 14 shown",
        "entries of overlap of channels M": "12 of 21 shown",
        "entries of diffusion coefficient Lambda": "12 of 28 shown",
    }
    runs = limit[["time", "q"]].expand_dims(replica=2)
    assert ("entries of overlap q", "12 of 14 shown") in list(of_particles(runs))
    for name in ("density", "particles", "ensemble", "order_parameters"):
        assert not any("entries" in number for number, _ in content_of(Result.of(results[name])).numbers)
