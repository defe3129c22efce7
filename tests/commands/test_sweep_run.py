"""`looped sweep run`: its launchers and its mistakes; the training itself is in tests/sweeps."""

import shlex

import pytest

from looped.cli import main
from looped.sweeps.failures import record_failure
from looped.sweeps.grid import read_grid
from looped.sweeps.locks import take_lock
from looped.sweeps.plan import plan_sweep
from looped.sweeps.sweep_file import registered_runs
from tests.test_record import a_record


@pytest.mark.slow
def test_commands_are_lines_that_work(write_grid, capsys):
    """Only what is left is printed; a line trains its run, and the sweep knows it."""
    grid = write_grid()
    complete, held, failed, planned = plan_sweep(read_grid(grid))
    complete.directory.mkdir(parents=True)
    a_record(status="complete").write(complete.directory)
    lock = take_lock(held.directory)
    record_failure(failed.directory, "x")
    assert main(["sweep", "run", str(grid), "--launcher", "commands"]) == 1
    output = capsys.readouterr()
    assert output.err == f"looped sweep: {failed.name} failed: x (--retry tries it again)\n"
    (line,) = output.out.splitlines()
    words = shlex.split(line)
    assert words[:2] == ["looped", "fit"]
    assert f"--run.dir={planned.directory}" in words
    assert main(words[1:]) == 0
    lock.close()
    capsys.readouterr()
    assert main(["sweep", "run", str(grid), "--launcher", "commands", "--retry"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [str(run.directory) in line for run, line in zip((held, failed), lines, strict=True)]


def test_several_grids_are_one_sweep(write_grid, tmp_path, capsys):
    """A line for every run of both, the shared ones once."""
    first = write_grid().rename(tmp_path / "first.yaml")
    second = write_grid(seeds=[0, 1]).rename(tmp_path / "second.yaml")
    assert main(["sweep", "run", str(first), str(second), "--launcher", "commands"]) == 0
    lines = capsys.readouterr().out.splitlines()
    runs = plan_sweep(read_grid(second))
    assert len(lines) == len(runs) == 8
    assert {run.name for run in runs} == {run.name for run in registered_runs(tmp_path / "sweep")}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--launcher", "cloud"], "invalid choice: 'cloud'"),
        (["--slurm", "timeout_min=5"], "--slurm goes with --launcher slurm"),
        (["--launcher", "slurm", "--slurm", "fast"], "--slurm fast: write it as NAME=VALUE"),
    ],
    ids=str,
)
def test_mistakes(write_grid, capsys, options, words):
    assert main(["sweep", "run", str(write_grid()), *options]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
