"""The command `meanfield` finds its commands, and each says in its line of usage how it was called."""

import os
import sys
import tomllib

import pytest

import meanfield
from meanfield.commands import entry
from meanfield.commands.dispatch import COMMANDS
from meanfield.families.contrastive import FAMILY
from tests import PACKAGE, ROOT
from tests.commands.names import NAMES, SCRIPTS
from tests.example_problems import SMALL


def test_help_lists_every_command_with_a_line(call):
    code, out, _ = call("--help")
    assert code == 0
    for name, command in COMMANDS.items():
        assert f"\n  {name:18}{command.title}\n".replace(" ", "") in out.replace(" ", "")
    assert max(map(len, out.splitlines())) <= 100


def test_version(call):
    assert call("--version") == (0, f"meanfield {meanfield.__version__}\n", "")


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself_under_its_own_name(call, name):
    code, out, err = call(name, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: meanfield {name} [-h]")
    assert COMMANDS[name].load().__doc__.splitlines()[0] in out
    assert "exit codes: 0 done, 1 failed or interrupted, 2 bad input" in out


@pytest.mark.parametrize(("name", "script"), SCRIPTS.items(), ids=SCRIPTS)
def test_a_script_is_the_same_command_under_the_name_of_the_script(call, monkeypatch, capsys, name, script):
    _, help_of_command, _ = call(name, "--help")
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    with pytest.raises(SystemExit):
        entry.run_script(name)
    usage, rest = capsys.readouterr().out.split("\n\n", 1)
    assert usage.startswith(f"usage: {script.name} [-h]")
    assert rest == help_of_command.split("\n\n", 1)[1]


def test_every_command_is_a_script_but_those_that_a_clone_does_not_need():
    assert set(COMMANDS) - set(SCRIPTS) == {"cite", "example", "explore", "keys", "completion"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["densty"], "error: unknown command 'densty'; did you mean 'density'?; meanfield --help lists all\n"),
        ([], "error: the following arguments are required: COMMAND; --help explains all arguments\n"),
        (["density"], "error: the following arguments are required: PROBLEM.toml, -o/--output; --help explains all"),
        (["example", "sparse_priro"], "error: unknown example 'sparse_priro'; did you mean 'sparse_prior'?"),
    ],
)
def test_what_is_not_known_ends_with_code_2_and_the_nearest_name(call, words, message):
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    "words",
    [
        ["density", "in.toml", "-o", "in.toml"],
        ["solve", "order_parameters", "in.toml", "-o", "same.toml"],
        ["density", "in.toml", "-o", "out.nc", "--joint", "in.toml"],
        ["stationary", "in.toml", "-o", "in.toml"],
        ["dynamics", "in.toml", "-o", "in.toml"],
        ["compare", "in.toml", "other.nc", "-o", "in.toml"],
        ["report", "in.toml", "-o", "in.toml"],
    ],
)
def test_a_file_that_is_read_is_never_written_to(call, tmp_path, monkeypatch, words):
    """A slip of the name would destroy the problem or hours of computing; a link to the file is the file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.toml").write_text(SMALL)
    (tmp_path / "same.toml").symlink_to("in.toml")
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert "toml: is a file that is read, and would be lost; choose another name for the output" in err
    assert (tmp_path / "in.toml").read_text() == SMALL


def test_a_pipe_is_no_output_that_a_file_may_replace(call, tmp_path, monkeypatch):
    """A user who may write to /dev replaced /dev/null by a netCDF file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.toml").write_text(SMALL)
    os.mkfifo("pipe")
    code, out, err = call("density", "in.toml", "-o", "pipe")
    assert (code, out) == (2, "")
    assert "pipe: is a device or a pipe, which a file would replace; choose another name" in err
    assert (tmp_path / "pipe").is_fifo()


def test_a_name_that_no_file_can_have_is_refused_before_anything_is_computed(call, tmp_path):
    (tmp_path / "in.toml").write_text(SMALL)
    code, out, err = call("density", tmp_path / "in.toml", "-o", tmp_path / ("a" * 300 + ".nc"))
    assert (code, out) == (2, "")
    assert "cannot be written (File name too long); choose another name for the output" in err


def test_a_command_solves_and_its_result_says_how_it_was_called(call, tmp_path):
    (tmp_path / "small.toml").write_text(SMALL)
    code, out, err = call("order-parameters", tmp_path / "small.toml", "-o", tmp_path / "out.nc")
    assert (code, err) == (0, "")
    assert out.startswith(f"wrote {tmp_path / 'out.nc'} (order_parameters, q(1) = ")
    command = f"/somewhere/bin/meanfield order-parameters {tmp_path / 'small.toml'} -o {tmp_path / 'out.nc'}"
    assert command in meanfield.load(tmp_path / "out.nc").attrs["provenance"]


def test_solve_finds_the_method_in_the_family_of_the_problem(call, tmp_path):
    (tmp_path / "small.toml").write_text(SMALL)
    needed = (tmp_path / "small.toml", "-o", tmp_path / "out.nc")
    shown = call("solve", "--help")[1]
    lines = [
        line.split(maxsplit=1) for line in shown.partition("family contrastive:\n")[2].partition("\n\n")[0].splitlines()
    ]
    assert [name for name, _ in lines] == list(FAMILY.methods)
    assert len({about for _, about in lines}) == len(lines)  # each says what it alone is for
    code, out, err = call("solve", "order_parameters", *needed)
    assert (code, err) == (0, "")
    assert out.startswith(f"wrote {tmp_path / 'out.nc'} (order_parameters, q(1) = ")
    code, _, err = call("solve", "order_parametrs", *needed)
    assert code == 2
    assert "did you mean 'order_parameters'?" in err
    code, _, err = call("solve", tmp_path / "small.toml", "order_parameters", "-o", tmp_path / "out.nc")
    assert code == 2
    assert "small.toml' is a file; the method comes first, and the problem file behind it" in err
    code, _, err = call("solve", "order_parameters", *needed, "--workers", 2)
    assert code == 2
    assert "--workers: the method 'order_parameters' takes no number of threads; leave it out" in err


def test_a_command_for_a_method_takes_problems_of_every_family_that_has_it(call, tmp_path):
    """Whatever it is given besides, and refuses what a family does not know."""
    example, out = PACKAGE / "families/alpha_contrastive/example.toml", tmp_path / "out.nc"
    assert call("density", example, "-o", out)[::2] == (0, "")
    code, _, err = call("density", example, "-o", out, "--backend", "fipy")
    assert code == 2
    assert "--backend: the method 'density' of this problem's family does not take it; leave it out" in err
    assert call("sgd", example, "-o", out, "--workers", 1)[0] == 0


FORMULA = """
model = { activation = "quadratic", learning_rate = 0.05, batch_size = 4, channels = 2, initial_channel_overlap = 0.2 }
features = [{ hidden = { law = "gaussian" }, coordinate = { law = "rademacher" }, initial_overlap = [0.5, 0.3] }]
time = { stop = 1.0, outputs = 3 }
"""
"""Two channels without a prior, whose densities are Gaussian."""


def test_the_density_of_both_weights_has_a_file_of_its_own(call, tmp_path):
    (tmp_path / "one.toml").write_text(SMALL)
    (tmp_path / "two.toml").write_text(FORMULA)
    out, joint = tmp_path / "out.nc", tmp_path / "joint.nc"
    code, said, err = call("density", tmp_path / "two.toml", "-o", out, "--joint", joint)
    assert (code, err) == (0, "")
    assert said.endswith(f"wrote {joint} (joint_density)\n")
    assert [meanfield.load(path).attrs["method"] for path in (out, joint)] == ["density", "joint_density"]
    for more, message in (
        (("two.toml", "--joint", out), "is the name of two outputs; give each a file of its own"),
        (
            ("two.toml", "--joint", joint, "--backend", "fipy"),
            "joint densities have 'numba' alone",
        ),
        (("one.toml", "--joint", joint), "model.channels = 1: a joint density is one of weights"),
    ):
        code, _, err = call("density", tmp_path / more[0], "-o", out, *more[1:])
        assert (code, message in err) == (2, True)


@pytest.mark.parametrize("workers", [(), ("--workers", 1)])
def test_solve_keeps_states_where_a_method_resumes(call, tmp_path, workers):
    (tmp_path / "small.toml").write_text(SMALL)
    code, _, err = call("solve", "particles", tmp_path / "small.toml", "-o", tmp_path / "out.nc", *workers)
    assert (code, err) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.nc", "small.toml"]
    sgd = meanfield.simulate_sgd(meanfield.load_problem(tmp_path / "small.toml"))
    assert meanfield.load(tmp_path / "out.nc").drop_attrs().equals(sgd.drop_attrs())


def test_the_command_is_installed():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"meanfield": f"{entry.__name__}:{entry.main.__name__}"}
