"""The progress display shows what goes by and changes nothing."""

import io
import os
import re
import subprocess
import sys
import time

import pytest
from rich.console import Console

from looped.datamodules.progress import PrepareProgress
from looped.datamodules.split import SplitDocument

DOCUMENTS = [SplitDocument("x" * 10, 10, held_out=False)] * 5


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("total", [None, 50])
def test_documents_pass_unchanged(wanted, total, capsys):
    """Without it, watching the progress would change the data, or mix with the summary."""
    with PrepareProgress(wanted=wanted, total_bytes=total) as progress:
        assert list(progress.follow(DOCUMENTS, "working")) == DOCUMENTS
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == ""


@pytest.mark.parametrize("color", ["", "1"])
def test_off_a_terminal_nothing_is_printed(color):
    """Without it, an empty line would stand before an error message in a log."""
    program = (
        "from looped.datamodules.progress import PrepareProgress\n"
        "with PrepareProgress(wanted=True, total_bytes=5) as p: list(p.follow([], 'working'))"
    )
    environment = os.environ | {"FORCE_COLOR": color}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, env=environment
    )
    assert (done.stdout, done.stderr) == (b"", b"")


def test_speed_and_time_left_are_shown():
    """Without it, nobody would know whether to wait for minutes or for days."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200)
    with PrepareProgress(wanted=True, total_bytes=100, console=console) as progress:
        for _ in progress.follow(DOCUMENTS, "working"):
            time.sleep(0.15)  # the display is drawn ten times a second
    assert re.search(r"working .* 40 % .* documents/s  .* MB/s left .*0:00:0", screen.getvalue())
