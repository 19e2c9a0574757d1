"""Laws that a file of samples gives: kinds of files, what is taken of them, and what is refused."""

import numpy as np
import pytest
import xarray as xr
from pydantic import ValidationError
from scipy import stats

from meanfield import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.ingredients.laws.empirical import Empirical, JointEmpirical
from meanfield.problems.file import format_problem, load_problem, parse_problem

FALSE_ALARM = 1e-4  # of each test of a sampler, had its seed been drawn at random
SAMPLES = 20_000

ROWS = np.array([[1.5, -2.0], [0.1, 4.0], [1.5, -2.0], [-1e-3, 7.0], [0.1, 1e3]])
FIRST = {-1e-3: 0.2, 0.1: 0.4, 1.5: 0.4}
SECOND = {-2.0: 0.4, 4.0: 0.2, 7.0: 0.2, 1e3: 0.2}

TEXT = """
model = {{ activation = "quadratic", learning_rate = 0.3, batch_size = 4 }}
time = {{ stop = 1.0 }}
[[features]]
hidden = {{ law = "empirical", {keys} }}
initial_overlap = 0.3
"""


def write_csv(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


CSV = ["1.5,-2", "0.1,4.0", "1.5,-2.0", "-1e-3,7", "0.1,1e3"]


@pytest.fixture
def folder(tmp_path):
    """A folder of samples, all of them those in `ROWS`."""
    np.save(tmp_path / "rows.npy", ROWS)
    np.save(tmp_path / "single.npy", ROWS[:, 0])
    np.save(tmp_path / "fortran.npy", np.asfortranarray(ROWS))
    (tmp_path / "UPPER.NPY").write_bytes((tmp_path / "rows.npy").read_bytes())
    write_csv(tmp_path / "rows.csv", CSV)
    write_csv(tmp_path / "names.csv", ["first,second", *CSV])
    write_csv(tmp_path / "units.csv", ['"c, in metres","µ"', *CSV])
    write_csv(tmp_path / "spaces.csv", [line.replace(",", " , ") for line in CSV])
    write_csv(tmp_path / "marked.csv", ["\ufeff" + CSV[0], *CSV[1:]])
    write_csv(tmp_path / "marked_names.csv", ["\ufefffirst,second", *CSV])
    write_csv(tmp_path / "semicolons.csv", ["first;second", *(line.replace(",", ";") for line in CSV)])
    write_csv(tmp_path / "tabs.csv", [line.replace(",", "\t") for line in CSV])
    write_csv(tmp_path / "quoted.csv", ['"first","second"', *('"' + line.replace(",", '","') + '"' for line in CSV)])
    write_csv(tmp_path / "words.csv", ["first,place", *(line.split(",")[0] + ",Paris" for line in CSV)])
    write_csv(tmp_path / "gaps.csv", ["first,second", *(line.split(",")[0] + "," for line in CSV)])
    (tmp_path / "windows.csv").write_bytes(("first,second\r\n" + "\r\n".join(CSV)).encode())
    single, double = xr.DataArray(ROWS[:, 0], dims="sample"), xr.DataArray(ROWS, dims=("sample", "variable"))
    dataset = xr.Dataset({"c": single, "both": double, "words": ("sample", list("abcde")), "one": 3.0})
    dataset.to_netcdf(tmp_path / "rows.nc")
    return tmp_path


def problem(folder, keys):
    """The problem, its file in that folder."""
    (folder / "problem.toml").write_text(TEXT.format(keys=keys))
    return load_problem(folder / "problem.toml")


def refusal(folder, keys):
    with pytest.raises(InputError) as error:
        problem(folder, keys)
    return str(error.value)


def law(folder, keys):
    return problem(folder, keys).features[0].hidden


def frequencies(values, probability):
    assert values.shape == (len(probability), 1)
    return dict(zip(values[:, 0], probability, strict=True))


@pytest.mark.parametrize(
    "keys",
    [
        "file = 'rows.npy'",
        "file = 'single.npy'",
        "file = 'fortran.npy'",
        "file = 'UPPER.NPY'",
        "file = 'rows.csv'",
        "file = 'names.csv'",
        "file = 'units.csv'",
        "file = 'spaces.csv'",
        "file = 'marked.csv'",
        "file = 'marked_names.csv'",
        "file = 'windows.csv'",
        "file = 'semicolons.csv'",
        "file = 'tabs.csv'",
        "file = 'quoted.csv'",
        "file = 'words.csv'",
        "file = 'gaps.csv'",
        "file = 'rows.nc', variable = 'c'",
        "file = 'rows.nc', variable = 'both'",
        "file = 'rows.npy', column = 0",
    ],
)
def test_kinds_of_files(folder, keys):
    """Every sample is as likely as any other; equal ones count twice."""
    found = law(folder, keys)
    assert frequencies(*found.atoms) == pytest.approx(FIRST, rel=1e-15)  # rounding
    assert found.dimension == 1
    assert found.exact
    probability, mean, variance = found.components(2.0)
    assert frequencies(mean, probability) == pytest.approx(FIRST, rel=1e-15)  # rounding
    assert not variance.any()


@pytest.mark.parametrize(
    "keys", ["file = 'rows.npy'", "file = 'rows.csv'", "file = 'names.csv'", "file = 'rows.nc', variable = 'both'"]
)
def test_another_column(folder, keys):
    assert frequencies(*law(folder, f"{keys}, column = 1").atoms) == pytest.approx(SECOND, rel=1e-15)  # rounding


@pytest.mark.parametrize("column", [0, 1])
def test_standardised_samples(folder, column):
    found = frequencies(*law(folder, f"file = 'rows.npy', column = {column}, standardise = true").atoms)
    right = stats.zscore(ROWS[:, column])
    assert sorted(found) == pytest.approx(sorted(set(right)), rel=1e-14)  # rounding
    values, probability = np.array([*found]), np.array([*found.values()])
    assert probability @ values == pytest.approx(0, abs=1e-15)  # rounding
    assert probability @ values**2 == pytest.approx(1, rel=1e-14)  # rounding


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32])
def test_numbers_of_any_kind(folder, kind):
    np.save(folder / "kind.npy", np.array([3, 0, 200], dtype=kind))
    values = law(folder, "file = 'kind.npy'").atoms[0]
    assert values.dtype == float
    assert values[:, 0].tolist() == [0, 3, 200]


def test_samples_are_drawn_with_their_frequencies(folder):
    found = law(folder, "file = 'rows.npy', column = 1")
    sample = found.sample(np.random.default_rng(51), (200, 100))
    assert sample.shape == (200, 100, 1)
    np.testing.assert_array_equal(sample, found.sample(np.random.default_rng(51), (200, 100)))
    counts = [np.count_nonzero(sample == value) for value in SECOND]
    assert sum(counts) == SAMPLES
    assert stats.chisquare(counts, np.array([*SECOND.values()]) * SAMPLES).pvalue > FALSE_ALARM


def test_many_samples_of_a_law_stand_for_it(folder):
    """The closures of 4000 Gaussian samples, standardised, are those of a Gaussian within their fluctuations."""
    np.save(folder / "many.npy", 7 + 3 * np.random.default_rng(52).standard_normal(4000))
    found = Closure(problem(folder, "file = 'many.npy', standardise = true"))
    right = Closure(parse_problem(TEXT.replace('"empirical"', '"gaussian"').format(keys="second_moment = 1.0")))
    assert found([0.6])[1] == pytest.approx(right([0.6])[1], rel=0.2)  # sixth moment: sqrt(10395/225/4000) = 11 %
    assert found([0.6])[1] != right([0.6])[1]


def test_all_samples_count(folder):
    """For x^2, E Theta^6 of c.q + s e, with all atoms."""
    found = Closure(problem(folder, "file = 'rows.npy'"))
    q, v = 0.6, 1 - 0.36
    b = ROWS[:, 0] * q
    sixth = np.mean(b**6 + 15 * b**4 * v + 45 * b**2 * v**2 + 15 * v**3)
    assert found([q])[1] == pytest.approx(0.3**2 / 4 * 16 * sixth, rel=1e-11)  # rounding of the table of Theta^6


# Where the file is


def test_the_path_is_relative_to_the_problem_file(folder, monkeypatch):
    (folder / "data").mkdir()
    (folder / "rows.npy").rename(folder / "data" / "rows.npy")
    (folder / "deep").mkdir()
    for place in (folder, folder / "data", folder / "deep"):
        monkeypatch.chdir(place)
        assert len(law(folder, "file = 'data/rows.npy'").atoms[1]) == 3
        assert len(law(folder / "deep", "file = '../data/rows.npy'").atoms[1]) == 3
    monkeypatch.chdir(folder / "data")
    assert "no such file" in refusal(folder, "file = 'rows.npy'")  # which lies in the working directory
    assert len(law(folder / "deep", f"file = '{folder / 'data' / 'rows.npy'}'").atoms[1]) == 3


def test_a_problem_loaded_from_the_working_directory_works_elsewhere(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "problem.toml").write_text(TEXT.format(keys="file = 'rows.npy'"))
    found = load_problem("problem.toml")
    monkeypatch.chdir("/")
    stored = parse_problem(format_problem(found))
    assert len(stored.features[0].hidden.atoms[1]) == 3


def test_written_and_read_again(folder):
    for keys in ("file = 'rows.npy', column = 1, standardise = true", "file = 'rows.nc', variable = 'c'"):
        found = problem(folder, keys)
        stored = parse_problem(format_problem(found))
        assert stored == found
        assert format_problem(stored) == format_problem(found)
        assert frequencies(*stored.features[0].hidden.atoms) == frequencies(*found.features[0].hidden.atoms)
        assert stored == found  # also after the samples have been read


def test_a_result_outlives_its_samples(folder):
    """What is stored is read without opening a file; only using it needs the samples."""
    text = format_problem(problem(folder, "file = 'rows.npy'"))
    (folder / "rows.npy").unlink()
    stored = parse_problem(text, trusted=False)
    assert stored.features[0].hidden.file == str(folder / "rows.npy")
    with pytest.raises(InputError, match=r"rows\.npy': no file is opened because a result names it"):
        Closure(stored)
    with pytest.raises(InputError, match=r"hidden: .*rows\.npy: no such file of samples"):
        parse_problem(text)


def test_files_of_problems_made_in_python_are_read_at_once(folder, monkeypatch):
    monkeypatch.chdir(folder)
    made = Empirical(file="rows.npy")
    assert made.file == str(folder / "rows.npy")
    with pytest.raises(ValidationError, match=r"nowhere\.npy: no such file of samples"):
        Empirical(file="nowhere.npy")


def test_columns_of_a_csv_file_are_chosen_by_their_names(folder):
    """With spaces or a mark of the encoding around them, and beside columns of words that nobody asks for."""
    write_csv(folder / "named.csv", [" first ,who,second", *(line.replace(",", ",somebody,") for line in CSV)])
    for file in ("names.csv", "semicolons.csv", "quoted.csv", "marked_names.csv", "named.csv"):
        for name, wanted in (("first", FIRST), ("second", SECOND)):
            made = Empirical(file=str(folder / file), column=name)
            values, chances = made.atoms
            assert dict(zip(values[:, 0].tolist(), chances.tolist(), strict=True)) == pytest.approx(wanted)
    by_number = JointEmpirical(file=str(folder / "names.csv"), columns=(1, 0)).atoms
    by_name = JointEmpirical(file=str(folder / "names.csv"), columns=("second", "first")).atoms
    for one, other in zip(by_number, by_name, strict=True):
        np.testing.assert_array_equal(one, other)
    again = problem(folder, "file = 'names.csv', column = 'second'")
    assert parse_problem(format_problem(again)) == again


@pytest.mark.parametrize(
    ("file", "column", "words"),
    [
        ("names.csv", "frist", r"column 'frist': .*names\.csv has none of that name; did you mean 'first'\?"),
        ("rows.csv", "first", r"rows\.csv has none of that name; it has no line of names; give a number"),
        ("rows.npy", "first", r"rows\.npy has none of that name; it has no line of names; give a number"),
        ("twice.csv", "first", r"twice\.csv has several of that name; give its number, counted from 0"),
        ("names.csv", -1, "should be greater than or equal to 0"),
        ("names.csv", True, "should be a valid"),
    ],
)
def test_columns_that_are_not_there_are_refused(folder, file, column, words):
    write_csv(folder / "twice.csv", ["first,first", *CSV])
    shown = str(column).lower() if column is True else repr(column)
    with pytest.raises(InputError, match=words):
        problem(folder, f"file = '{file}', column = {shown}")
    assert problem(folder, f"file = '{file}', column = 0").features[0].hidden.column == 0  # the remedy


# What is refused


def save(folder, name, values):
    np.save(folder / name, values, allow_pickle=True)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("nan", [1.0, np.nan, 2.0], ["sample 1 is not finite", "remove or replace it"]),
        ("inf", [[1.0, 2.0], [3.0, 4.0], [-np.inf, 5.0]], ["sample 2 is not finite", "remove or replace it"]),
        ("words", ["a", "b"], ["holds <U1 of shape (2,)", "give real numbers"]),
        ("flags", [True, False], ["holds bool of shape (2,)", "give real numbers"]),
        ("complex", [1j, 2.0], ["holds complex128 of shape (2,)", "give real numbers"]),
        ("cube", np.ones((2, 2, 2)), ["shape (2, 2, 2)", "(samples,) or (samples, columns)"]),
        ("scalar", 3.0, ["shape ()", "(samples,) or (samples, columns)"]),
        ("empty", np.empty(0), ["shape (0,)", "(samples,) or (samples, columns)"]),
        ("no_columns", np.empty((3, 0)), ["shape (3, 0)", "(samples,) or (samples, columns)"]),
        ("pickled", np.array([1.0, "a", None], dtype=object), ["cannot be read as samples", "give numbers"]),
        ("zero", np.zeros(3), ["all samples are 0", "give other samples"]),
        ("huge", [1.0, -2e6], ["holds samples beyond 1e+06", "standardise = true"]),
    ],
)
def test_numpy_files(folder, name, values, words):
    save(folder, f"{name}.npy", values)
    found = refusal(folder, f"file = '{name}.npy'")
    assert all(word in found for word in ["features[0].hidden", f"{name}.npy", *words]), found


def test_large_samples_can_be_standardised(folder):
    np.save(folder / "large.npy", [1e9, 3e9])
    assert law(folder, "file = 'large.npy', standardise = true").atoms[0].tolist() == [[-1.0], [1.0]]
    np.save(folder / "endless.npy", [1e200, -1e200])  # their variance is no number
    assert "variance is beyond all numbers" in refusal(folder, "file = 'endless.npy', standardise = true")


def test_pickles_are_not_opened(folder):
    """Loading one may run any code."""

    class Trap:
        def __reduce__(self):
            return (open, (str(folder / "sprung"), "w"))

    save(folder, "trap.npy", np.array([Trap()], dtype=object))
    assert "cannot be read as samples" in refusal(folder, "file = 'trap.npy'")
    assert not (folder / "sprung").exists()


NO_HEADER = b"\x93NUMPY\x01\x00\x0f\x00{'descr': '<f8',"
"""Bytes of a file that begins as numpy's files do, and never closes its brace."""


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x93NUMPY\x01\x00v", b"PK\x03\x04 no archive", NO_HEADER])
@pytest.mark.parametrize("keys", ["file = 'broken.npy'", "file = 'broken.nc', variable = 'c'"])
def test_broken_files(folder, content, keys):
    for suffix in ("npy", "nc"):
        (folder / f"broken.{suffix}").write_bytes(content)
    found = refusal(folder, keys)
    assert all(word in found for word in ["features[0].hidden", "broken.n", "cannot be read as samples"]), found
    assert len(found.splitlines()) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("lines", "column", "words"),
    [
        (
            ["1.0,2.0", "3.0,x"],
            1,
            ["cannot be read as samples", "'x' in the line '3.0,x' is no number"],
        ),
        (["1.0,2.0", "3.0"], 0, ["cannot be read as samples", "as many columns in the line '3.0'"]),
        (["a,b", "1.0,"], 1, ["cannot be read as samples", "one sample per row"]),
        (["1.0,2.0", "nan,1.0"], 0, ["sample 1 is not finite"]),
        (["a,b", "1.0,2.0", "1.0,inf"], 1, ["sample 1 is not finite"]),
        (["1.0", "2j"], 0, ["cannot be read as samples", "'2j'"]),
        (["1,5;2,5", "3,5;4,5"], 0, ["cannot be read as samples", "'3,5'"]),
        (["a;b", "1,5;2,5"], 0, ["'1,5' in the line '1,5;2,5' is no number; write 1.5, with a decimal point"]),
        (["a", "1,5", "2,5"], 0, ["commas in the line '1,5' seem to be decimal ones; write decimal points"]),
        (["1,5", "2,05"], 0, ["commas in the line '1,5' seem to be decimal ones"]),
        (["1,5", "-0,5"], 0, ["commas in the line '1,5' seem to be decimal ones"]),
        (["1,5", "2"], 0, ["commas in the line '1,5' seem to be decimal ones"]),
        (
            ["1.5 2.5", "3.5 4.5"],
            0,
            ["'3.5 4.5' in the line", "no number; put commas, semicolons or tabs"],
        ),
        (["a,b"], 0, ["no rows", "one sample per row"]),
        ([], 0, ["no rows", "one sample per row"]),
        (["1.0,2..5", "3.0,4.0"], 1, ["'2..5'"]),
    ],
)
def test_csv_files(folder, lines, column, words):
    write_csv(folder / "odd.csv", lines)
    found = refusal(folder, f"file = 'odd.csv', column = {column}")
    assert all(word in found for word in ["features[0].hidden", "odd.csv", *words]), found


@pytest.mark.parametrize("lines", [["1,5", "2,50"], ["a,b", "1,5", "0,7"], ["1,0", "-2,0"], ["1,-5", "2,05"]])
def test_columns_of_whole_numbers(folder, lines):
    write_csv(folder / "whole.csv", lines)
    values, _ = law(folder, "file = 'whole.csv', column = 0").atoms
    assert sorted(values[:, 0]) == sorted(float(line.split(",")[0]) for line in lines if line != "a,b")


def test_samples_in_another_encoding(folder):
    (folder / "wide.csv").write_bytes("\n".join(CSV).encode("utf-16"))
    assert "it is UTF-16" in refusal(folder, "file = 'wide.csv'")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("file = 'none.npy'", ["none.npy: no such file of samples", "correct `file`", "relative to the problem file"]),
        (f"file = '{'a' * 999}.npy'", ["hidden.file = 'aaa", "at most 1000 characters"]),
        (f"file = '{'a' * 900}.npy'", ["hidden: /", " ... ", "a.npy: no such file of samples", "correct `file`"]),
        ("file = 'rows.txt'", ["rows.txt: samples are read from .npy, .csv, .nc files", "convert the file"]),
        ("file = 'rows'", ["samples are read from .npy, .csv, .nc files", "convert the file"]),
        ("file = ''", ["hidden.file = ''", "at least 1 character"]),
        ("file = 3", ["hidden.file = 3", "string"]),
        ("column = 0", ["hidden.file: is missing; add it"]),
        ("file = 'rows.npy', column = 2", ["column 2", "rows.npy has 2 column(s), counted from 0", "name others"]),
        ("file = 'single.npy', column = 1", ["column 1", "single.npy has 1 column(s), counted from 0"]),
        ("file = 'rows.npy', column = -1", ["hidden.column = -1", "greater than or equal to 0"]),
        ("file = 'rows.npy', columns = [0]", ["hidden: unknown key 'columns'", "'column'?"]),
        ("file = 'rows.npy', variable = 'c'", ["rows.npy: `variable`", ".nc"]),
        ("file = 'rows.nc'", ["rows.nc: `variable`", ".nc"]),
        ("file = 'rows.nc', variable = 'd'", ["rows.nc", "no variable 'd'", "c, both, words, one"]),
        ("file = 'rows.nc', variable = 'words'", ["rows.nc", "give real numbers"]),
        ("file = 'rows.nc', variable = 'one'", ["rows.nc", "shape ()", "(samples,) or (samples, columns)"]),
        ("file = 'rows.npy', standardise = 1", ["hidden.standardise = 1", "boolean"]),
    ],
)
def test_keys(folder, keys, words):
    found = refusal(folder, keys)
    assert all(word in found for word in ["features[0].hidden", *words]), found


@pytest.mark.parametrize(("value", "count"), [(2.0, 10), (0.1, 3), (0.3, 10), (1e5 + 0.1, 9)])
def test_constant_samples_cannot_be_standardised(folder, value, count):
    """Also where rounding leaves them a spread of 1e-17."""
    np.save(folder / "constant.npy", np.full(count, value))
    assert law(folder, "file = 'constant.npy'").atoms[0].tolist() == [[value]]
    found = refusal(folder, "file = 'constant.npy', standardise = true")
    for word in ("features[0].hidden", "constant.npy", "all equal cannot be standardised", "remove standardise"):
        assert word in found
