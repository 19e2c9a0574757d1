import os
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.errors import InputError
from meanfield.problems.file import parse_problem
from meanfield.process import atomic_files, locking
from meanfield.process.atomic_files import save_text
from meanfield.results import files
from meanfield.results.figure_files import save_figure
from tests.example_problems import SMALL


@pytest.fixture(scope="module")
def dataset():
    return meanfield.simulate_sgd(parse_problem(SMALL))


def test_saving_over_an_open_file_works_and_leaves_no_other_file(dataset, tmp_path):
    path = tmp_path / "run.nc"
    meanfield.save(dataset, path)
    with xr.open_dataset(path) as still_open:
        meanfield.save(dataset, path)
        assert still_open["q"].shape == dataset["q"].shape
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_failed_save_keeps_the_old_file(dataset, tmp_path):
    path = tmp_path / "run.nc"
    meanfield.save(dataset, path)
    before = path.read_bytes()
    broken = dataset.assign(bad=("x", np.array([object()], dtype=object)))
    with pytest.raises((TypeError, ValueError)):
        meanfield.save(broken, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_what_a_killed_writer_left_is_taken_over_and_deleted(dataset, tmp_path):
    left = tmp_path / ".run.nc.0.part"
    left.mkdir()
    (left / "lock").touch()
    (left / "run.nc").write_bytes(b"half of it")
    meanfield.save(dataset, tmp_path / "run.nc")
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


def test_what_killed_writers_left_is_deleted_and_what_living_ones_have_is_not(tmp_path):
    (tmp_path / ".dead.0.part").mkdir()
    (tmp_path / ".dead.0.part" / "lock").touch()

    def write(part):
        atomic_files.delete_abandoned(tmp_path)
        Path(part).write_text("text")

    atomic_files.write_atomically(tmp_path / "x", write)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_no_two_writers_write_to_the_same_place_even_one_after_the_other(tmp_path):
    """Else ffmpeg, started by a writer that was killed, could open the file of the next writer."""
    places = []

    def write(part):
        places.append(part)
        Path(part).write_text("text")

    for _ in range(2):
        atomic_files.write_atomically(tmp_path / "x", write)
    assert Path(places[0]).name == "x"
    assert places[0] != places[1]


@pytest.mark.parametrize("locks", [True, False])
def test_writers_of_one_name_at_once_do_not_meet(tmp_path, monkeypatch, locks):
    if not locks:
        monkeypatch.setattr(locking, "fcntl", None)

    def second_inside(part):
        with open(part, "w") as file:
            file.write("first")
        atomic_files.write_atomically(tmp_path / "x", lambda other: Path(other).write_text("second"))
        assert (tmp_path / "x").read_text() == "second"

    atomic_files.write_atomically(tmp_path / "x", second_inside)
    assert (tmp_path / "x").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_permissions_follow_the_umask(dataset, tmp_path):
    before = os.umask(0o027)
    try:
        meanfield.save(dataset, tmp_path / "run.nc")
    finally:
        os.umask(before)
    assert (tmp_path / "run.nc").stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_not_replaced(dataset, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: is a device or a pipe, which a file would replace"):
        meanfield.save(dataset, tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("target", "message"),
    [("missing/run.nc", "does not exist; create it"), (".", "is a directory; give the name of a file")],
)
def test_bad_output_paths(dataset, tmp_path, target, message):
    with pytest.raises(InputError, match=message):
        meanfield.save(dataset, tmp_path / target)


def test_a_link_leads_to_the_file_that_is_replaced(dataset, tmp_path):
    (tmp_path / "large disk").mkdir()
    (tmp_path / "run.nc").symlink_to("large disk/run.nc")
    for _ in range(2):  # into nothing, and over a file
        meanfield.save(dataset, tmp_path / "run.nc")
        assert (tmp_path / "run.nc").is_symlink()
        assert [path.name for path in (tmp_path / "large disk").iterdir()] == ["run.nc"]
    (tmp_path / "large disk" / "run.nc").chmod(0o444)
    with pytest.raises(InputError, match=r"run\.nc: is write-protected"):
        meanfield.save(dataset, tmp_path / "run.nc")
    (tmp_path / "lost.nc").symlink_to("nowhere/run.nc")
    with pytest.raises(InputError, match=r"lost\.nc: the output directory .*nowhere does not exist"):
        meanfield.save(dataset, tmp_path / "lost.nc")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("noext", "noext: a result is a netCDF file; give it the ending .nc"),
        ("x.txt", "x.txt: a result is a netCDF file; give it the ending .nc"),
        ("x" * 250 + ".nc", "x.nc: cannot be written"),  # the name fits, that of the folder in which it is written not
        ("\udcff.nc", r"\\udcff.nc': has letters that are none of utf-8"),
        ("a\0b.nc", r"a\\x00b.nc': give the path of the file to write"),
    ],
)
def test_names_of_results_are_refused_by_name(dataset, tmp_path, monkeypatch, name, message):
    """A path that the file system cannot hold was said to be a fault of the Dataset."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        meanfield.save(dataset, name)
    assert not list(tmp_path.iterdir())


def test_names_of_results_are_in_the_encoding_of_file_names(dataset, tmp_path, monkeypatch):
    meanfield.save(dataset, tmp_path / "é.nc")
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "ascii")  # of LC_ALL=C with PYTHONUTF8=0
    for use in (meanfield.load, lambda path: meanfield.save(dataset, path)):
        with pytest.raises(InputError, match=r"\\xe9.nc': has letters that are none of ascii.*set .*PYTHONUTF8=1"):
            use(tmp_path / "é.nc")


def test_load_refuses_what_is_no_run(dataset, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        meanfield.load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(InputError, match="cannot be read as netCDF"):
        meanfield.load(tmp_path / "text.nc")
    xr.Dataset({"q": ("x", [1.0])}).to_netcdf(tmp_path / "foreign.nc")
    with pytest.raises(InputError, match="not a result of meanfield"):
        meanfield.load(tmp_path / "foreign.nc")
    meanfield.save(dataset, tmp_path / "run.nc")
    whole = (tmp_path / "run.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read as netCDF"):
        meanfield.load(tmp_path / "cut.nc")


def test_texts_are_saved_like_results(tmp_path, monkeypatch):
    save_text("old: q²", tmp_path / "page.html")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk on fire")))
    with pytest.raises(OSError, match="disk on fire"):
        save_text("new", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "old: q²"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_figures_are_saved_by_their_ending(tmp_path):
    for name, start in (("f.png", b"\x89PNG"), ("f.pdf", b"%PDF"), ("f.svg", b"<?xml")):
        save_figure(Figure(), tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(InputError, match="'docx' is no figure format; use one of"):
        save_figure(Figure(), tmp_path / "f.docx")
    assert not (tmp_path / "f.docx").exists()


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_figure_is_drawn_once_for_the_file_that_matplotlib_makes_in_two_drawings(kind, tmp_path, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "svg.hashsalt", "the same ids")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    figure = Figure(layout="constrained")
    figure.subplots().set_title("a title")
    before = figure.get_layout_engine(), figure.canvas, figure.dpi
    drawings, draw = [], figure.draw
    monkeypatch.setattr(figure, "draw", lambda renderer: drawings.append(renderer) or draw(renderer))
    save_figure(figure, tmp_path / f"ours.{kind}")
    assert len(drawings) == 1
    assert (figure.get_layout_engine(), figure.canvas, figure.dpi) == before
    figure.savefig(tmp_path / f"usual.{kind}", dpi=150)
    assert len(drawings) == 3
    assert (tmp_path / f"ours.{kind}").read_bytes() == (tmp_path / f"usual.{kind}").read_bytes()


def test_large_variables_are_written_in_pieces_and_are_the_same(dataset, tmp_path, monkeypatch):
    meanfield.save(dataset, tmp_path / "whole.nc")
    monkeypatch.setattr(files, "WRITTEN_IN_PIECES", dataset["coordinate"].size)
    monkeypatch.setattr(files, "CHUNK", 30)
    monkeypatch.setattr(files, "COMPRESSED_FROM", 10)
    meanfield.save(dataset, tmp_path / "pieces.nc")
    assert meanfield.load(tmp_path / "pieces.nc").identical(meanfield.load(tmp_path / "whole.nc"))
    with xr.open_dataset(tmp_path / "pieces.nc") as plain:
        assert plain["weights"].encoding["zlib"]
        assert plain["weights"].attrs == dataset["weights"].attrs


def test_a_chunk_holds_whole_trailing_dims():
    assert files._chunks((8, 3, 1000)) == (8, 3, 1000)
    assert files._chunks((8, 41, 10**6)) == (1, 1, 2**18)
    assert files._chunks((1000, 41, 2)) == (1000, 41, 2)
    assert files._chunks((10**5, 41, 2)) == (2**18 // 82, 41, 2)


def test_a_piece_is_a_chunk_or_all_of_some_leading_dims():
    assert files._pieces((2**19 + 1,)) == [(slice(i * 2**18, (i + 1) * 2**18),) for i in range(3)]
    assert files._pieces((8, 41, 10**6)) == list(np.ndindex(8, 41))
    assert files._pieces((10**5, 41, 2))[-1] == (slice(31 * (2**18 // 82), 32 * (2**18 // 82)),)
