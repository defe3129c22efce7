"""The command line: start-up, help, and one line for a mistake."""

import subprocess
import sys
import time

import pytest

from looped import cli


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "looped", *arguments], capture_output=True, text=True
    )


def test_help_lists_every_command_without_importing_torch():
    """`looped --help` must answer in under a second: nothing heavy may be imported."""
    code = (
        "import sys; from looped.cli import main; main(['--help']); "
        "sys.exit(any(m in sys.modules for m in ('torch', 'lightning', 'numpy')))"
    )
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert time.monotonic() - started < 1
    for command in cli.TRAINING_COMMANDS | cli.COMMANDS:
        assert f"  {command} " in done.stdout


def test_an_unknown_command_offers_the_nearest():
    done = run("ph")
    assert done.returncode == 2
    assert done.stderr == "looped: error: unknown command 'ph': did you mean phi?\n"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["count", "--model.recurences", "3"], "did you mean --model.recurrences?"),
        (["phi", "--resample=3"], "unknown option --resample: did you mean --resamples?"),
        (["sweep", "plan", "grid.yaml", "--timeing"], "did you mean --timing?"),
        (["sweep", "run", "grid.yaml", "--retyr"], "did you mean --retry?"),
        (["phi", "--xyzzy"], "unknown option --xyzzy: see looped phi --help"),
    ],
)
def test_an_unknown_option_offers_the_nearest(arguments, words, capsys):
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_reader_that_has_enough_is_no_error():
    """`looped --help | head -0`: no traceback, and the status that shells know."""
    process = subprocess.Popen(
        [sys.executable, "-m", "looped", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 141
