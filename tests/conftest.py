"""Signals as a person's terminal sets them, however the tests were started; a garbage collector that rests; and modules
of a test that no other one finds."""

import gc
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

DISPOSITIONS = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGALRM: signal.SIG_DFL,
}
"""Dispositions of the signals that tests send; a shell starts what runs in its background with SIGINT ignored."""


ALLOCATIONS = (20_000, 20, 50)
"""Thresholds of the garbage collector: full collections, which look at all that was ever imported, become rare."""

gc.disable()  # until all is imported, of which almost nothing is garbage


TOGETHER = (
    *("families/update_rule", "families/hidden_manifold", "comparison", "commands", "documentation", "explanation"),
    *("mckean_vlasov", "ingredients", "families/contrastive"),
)
"""Folders of tests that compile the same inner functions, which a process keeps, and the disk does not."""


def pytest_collection_modifyitems(items):
    """Have one process run what compiles the same: each of the two of `make test` begins with a half of all tests."""

    def place(item):
        path = item.path.relative_to(Path(__file__).parent)
        return next((i for i, folder in enumerate(TOGETHER) if path.is_relative_to(folder)), len(TOGETHER))

    items.sort(key=place)


def pytest_collection_finish():
    """Spare the garbage collector the modules and tests that stay: it takes a tenth of the processor time else."""
    gc.freeze()
    gc.set_threshold(*ALLOCATIONS)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def usual_signals():
    """Signals have their usual effect on this process, and on those that it starts."""
    before = {number: signal.signal(number, usual) for number, usual in DISPOSITIONS.items()}
    yield
    for number, disposition in before.items():
        signal.signal(number, disposition)


@pytest.fixture
def plain_figures(monkeypatch):
    """Figures without layouts and places of legends, which take as long as a file; tests of plotting look at them."""
    monkeypatch.setattr("meanfield.plotting.panels._lay_out", lambda figure: figure.set_layout_engine("none"))
    monkeypatch.setattr("meanfield.plotting.panels.place_legend", lambda axes: axes.legend(loc="upper left"))


@pytest.fixture(autouse=True)
def forgotten_modules(request):
    """Modules that a test has imported from its folder are forgotten at its end."""
    if (
        "tmp_path" not in request.fixturenames
    ):  # to look at all modules takes a hundredth of the processor time of all tests
        yield
        return
    before = set(sys.modules)
    yield
    folder = str(request.node.funcargs["tmp_path"])
    new = {name: sys.modules[name] for name in set(sys.modules) - before}
    places = {name: [getattr(module, "__file__", ""), *_paths(module)] for name, module in new.items()}
    for name in [name for name in new if any(str(place).startswith(folder) for place in places[name])]:
        del sys.modules[name]


def _paths(module):
    """Folders of a package; PyTorch has namespaces in which everything is there, and nothing a list."""
    found = getattr(module, "__path__", ())
    return found if isinstance(found, Iterable) else ()
