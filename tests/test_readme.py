"""Every `looped` command of the README runs, in its order, on small stand-ins for text and grid."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from looped.cli import main
from looped.datamodules.prepare import prepare

VOCAB = 300  # the tiny corpus has no more
ROOT = Path(__file__).parents[1]


def commands() -> list[str]:
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("looped ")]


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


@pytest.mark.slow
def test_the_commands_of_the_readme_run(project, capsys):
    """A renamed option, a missing file or an order that does not work fails here."""
    assert len(commands()) >= 8
    for command in commands():
        small = command.replace("bpe:512", f"bpe:{VOCAB}")
        arguments = shlex.split(small, comments=True)[1:]
        status = main(arguments)
        assert status == 0, f"{command}\n{capsys.readouterr().err}"
