"""Folders for compiled code, one for each digest of its sources, and packages that nobody can write to."""

import os
import warnings

import numba
import pytest

from meanfield.process.own_numba import folder as folders
from meanfield.process.own_numba.folder import FOLDERS_KEPT, PACKAGE, PREFIX, folder, version, versioned_sources


@pytest.fixture
def nowhere(monkeypatch):
    """Numba finds no place that can be written."""

    def refuse(*_):
        raise RuntimeError("cannot cache function")

    monkeypatch.setattr(folders, "FunctionCache", refuse)
    folders._folder.cache_clear()
    yield
    folders._folder.cache_clear()


def test_a_temporary_folder_stands_in_where_nothing_can_be_written(nowhere):
    before = numba.config.CACHE_DIR
    with pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR to a folder that can be written"):
        found = folder()
    assert found.is_dir()
    assert not found.is_relative_to(PACKAGE)
    with warnings.catch_warnings(action="error"):
        assert folder() == found
    assert before == numba.config.CACHE_DIR


def test_the_folder_of_the_user_is_respected(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert folder().is_relative_to(tmp_path)
    assert folder().is_dir()
    assert folder().name == f"{PREFIX}{version()}"


def test_without_it_code_is_kept_beside_the_package(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    if os.access(PACKAGE, os.W_OK):
        assert folder().parent == PACKAGE / "__pycache__"


def test_a_new_version_forgets_those_that_were_not_used_for_longest(monkeypatch, tmp_path):
    place = tmp_path / f"{PACKAGE.name}_place"
    for age in range(FOLDERS_KEPT + 2):
        old = place / f"{PREFIX}{age}"
        old.mkdir(parents=True)
        (old / "kernel.nbc").touch()
        os.utime(old, (1e9 - age, 1e9 - age))
    (place / "of_others").mkdir()
    monkeypatch.setattr(folders, "_place", lambda: place)
    folders._folder.cache_clear()
    found = folder()
    folders._folder.cache_clear()
    names = {path.name for path in place.iterdir()}
    assert names == {found.name, "of_others", *(f"{PREFIX}{age}" for age in range(FOLDERS_KEPT - 1))}


TEXTS = {
    "__init__.py": "",
    "kernel.py": "from package.process import own_numba as numba\nfrom package.numbers import (\n    ONE,\n)\n",
    "process/__init__.py": "",
    "process/own_numba.py": "import numba\n",
    "numbers.py": "def late():\n    from package.late import THREE\n\nfrom package import deep\n",
    "late.py": "THREE = 3\n",
    "deep/__init__.py": "import package.deep.inner\n",
    "deep/inner.py": "FOUR = 4\n",
    "plotting.py": "from package.kernel import compute\n",
}
"""A package with a module that compiles, what it imports, directly or not, and a module that only calls it."""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Folder of a package of a few modules."""
    top = tmp_path / "package"
    for name, text in TEXTS.items():
        (top / name).parent.mkdir(exist_ok=True, parents=True)
        (top / name).write_text(text)
    monkeypatch.setattr(folders, "PACKAGE", top)
    versioned_sources.cache_clear()
    yield top
    versioned_sources.cache_clear()


def test_sources_are_what_compiles_and_what_that_imports(package):
    names = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in TEXTS}
    assert set(versioned_sources()) == {f"package.{name}" for name in names - {"__init__", "plotting"}} | {"package"}


@pytest.mark.parametrize("name", TEXTS)
def test_a_version_changes_with_each_of_them(package, name):
    """By its content: size and time may be what they were."""
    before = version()
    path = package / name
    path.write_text(path.read_text() + "# \n")
    versioned_sources.cache_clear()
    middle = version()
    path.write_text(path.read_text()[:-2] + "#\n")
    versioned_sources.cache_clear()
    assert len({before, middle, version()}) == (1 if name == "plotting.py" else 3)


def test_the_package_knows_the_modules_of_its_kernels():
    versioned_sources.cache_clear()
    found = versioned_sources()
    assert {"meanfield.ingredients.activations", "meanfield.mckean_vlasov.closures"} <= set(found)
    assert "meanfield.commands.density" not in found
