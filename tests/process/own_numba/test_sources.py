"""The digest of the sources of compiled code, which names its folder."""

import pytest

from meanfield.process.own_numba import folder
from meanfield.process.own_numba.folder import version, versioned_sources

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
    """Its folder."""
    top = tmp_path / "package"
    for name, text in TEXTS.items():
        (top / name).parent.mkdir(exist_ok=True, parents=True)
        (top / name).write_text(text)
    monkeypatch.setattr(folder, "PACKAGE", top)
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
