"""Every command of the README runs, in its order, on small stand-ins for text and grid."""

import io
import re
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest
from tensorboard.program import TensorBoard

from looped.cli import main
from looped.datamodules.prepare import prepare
from looped.scaling.run_tables import read_table

VOCAB = 300  # the tiny corpus has no more
ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
TARGETS = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
PROSE = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    return [
        line.split(" #")[0].strip()
        for language, text in BLOCKS
        if language == "bash"
        for line in text.splitlines()
        if line.strip()
    ]


def commands_in_prose() -> list[str]:
    """Those in backticks that have arguments; others are only called by their names."""
    found = re.findall(r"`(looped \w+ [^`]*)`", PROSE)
    return [command for command in found if "..." not in command]


@pytest.fixture
def project(tmp_path, corpus, monkeypatch) -> Path:
    """A directory like the clone after `make demo`, with horizons of a few steps."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "configs", "configs")
    for path in Path("configs").rglob("*.yaml"):
        text = re.sub(r"(tokens: )[\d.]+e\d", r"\g<1>2e3", path.read_text())
        text = re.sub(r"( )([\d.]+)e[56]: \[.*\]", r"\1\2e3: [16]", text)
        path.write_text(text.replace("vocab_size: 512", f"vocab_size: {VOCAB}"))
    with Path("configs/sweeps/demo.yaml").open("a") as grid:
        grid.write("min_steps: 1\n")
    shutil.copytree(corpus, "corpus")
    prepare(
        source="text",
        paths=["corpus/*.txt"],
        out="data/demo",
        seq_len=128,
        tokenizer=f"bpe:{VOCAB}",
        val_fraction=0.3,
    )
    shutil.copy(ROOT / "tests" / "data" / "isodepth_runs.csv", "my_runs.csv")
    return tmp_path


def check(command: str) -> None:
    """Run what is ours; of the rest, see that it exists."""
    program, *arguments = shlex.split(command, comments=True)
    if program == "looped":
        assert main(arguments) == 0, command
    elif program == "make":
        assert set(arguments) <= set(TARGETS), command
    elif program == "tensorboard":
        TensorBoard().configure(("tensorboard", *arguments))
    else:
        pytest.fail(f"nothing here knows how to check: {command}")


@pytest.mark.slow
def test_the_commands_of_the_readme_run(project):
    """A renamed option, a missing file or an order that does not work fails here."""
    assert len(commands()) >= 15
    for command in dict.fromkeys((*commands(), *commands_in_prose())):
        check(command.replace("bpe:512", f"bpe:{VOCAB}"))


def test_no_command_hides_from_the_test():
    """Blocks say what they are; what is indented, or called text, holds no command."""
    assert {language for language, _ in BLOCKS} <= {"bash", "text", "csv"}
    quiet = [line for language, text in BLOCKS if language == "text" for line in text.splitlines()]
    quiet += [line for line in PROSE.splitlines() if line.startswith("    ")]
    assert not [line for line in quiet if re.match(r"\s*[$]?\s*(looped|make|pip|python) ", line)]


def test_the_table_of_the_readme_is_one(tmp_path):
    """Its rows are read without complaint, and are those of two published runs."""
    ((_, text),) = [block for block in BLOCKS if block[0] == "csv"]
    path = tmp_path / "runs.csv"
    path.write_text(text)
    table, left_out = read_table(path)
    assert left_out == []
    published = pd.read_csv(ROOT / "tests" / "data" / "isodepth_runs.csv")
    own = pd.read_csv(io.StringIO(text))
    assert len(own.merge(published, on=list(own.columns))) == len(own) == len(table) == 2


def test_every_file_that_is_named_exists():
    """Links, and paths in backticks."""
    links = re.findall(r"\]\(([^)#]+)\)", README)
    named = re.findall(r"`((?:docs|tests|configs|looped)/[\w./*-]*)`", README)
    assert links
    assert [path for path in (*links, *named) if not list(ROOT.glob(path.rstrip("/")))] == []
