"""Every command that the documentation shows is one that exists, with options that exist."""

import re
import shlex
from pathlib import Path

import pytest

from looped.cli import COMMANDS, TRAINING_COMMANDS, main, parse_arguments

ROOT = Path(__file__).parents[1]
STAND_INS = {
    "run.yaml": "configs/demo.yaml",
    "runs/one/config.yaml": "configs/demo.yaml",
    "$SLURM_NNODES": "2",
    "$SLURM_NTASKS_PER_NODE": "8",
}
LEFT_OUT = ("$run", "${resume[@]}", "--print_config")  # the shell's variables; what is added below
PAGES = sorted((ROOT / "docs").glob("*.md"))


def commands(page: Path) -> list[list[str]]:
    """Arguments of the `looped` lines in a page's blocks of code, continued lines joined."""
    text = page.read_text().replace("\\\n", " ")
    lines = re.findall(r"^(?: {4,}|\$ | {4}\$ )?(?:[A-Z_]+=\S+ +)*looped (.*)$", text, re.MULTILINE)
    lines += re.findall(r"-m looped (.*)$", text, re.MULTILINE)
    lines = [line.split(" #")[0].split("&")[0] for line in lines]
    return [shlex.split(line) for line in lines if line.split()[0] in COMMANDS | TRAINING_COMMANDS]


def test_the_commands_are_found():
    """A page written in another way must not escape."""
    found = [arguments for page in PAGES for arguments in commands(page)]
    assert len(found) >= 24
    assert {arguments[0] for arguments in found} >= {"fit", "prepare", "sweep", "phi", "compare"}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_parse(page, capsys, monkeypatch):
    """Nothing is trained: the options are read, those of fit with the demo's configuration."""
    monkeypatch.chdir(ROOT)
    for command, *words in commands(page):
        arguments = [STAND_INS.get(word, word) for word in words if word not in LEFT_OUT]
        if command in COMMANDS:
            assert parse_arguments(command, arguments)
        else:
            with pytest.raises(SystemExit) as ended:
                main([command, *arguments, "--print_config"])
            assert ended.value.code == 0, capsys.readouterr().err
