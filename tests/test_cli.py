"""The command line: start-up, help, and one line for a mistake."""

import subprocess
import sys
import time

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
