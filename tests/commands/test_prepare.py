"""`looped prepare` prints what it made, and one line for a mistake."""

import subprocess
import sys

import pytest

from looped.cli import main
from looped.datamodules.prepared_data import read_prepared
from looped.datamodules.split import DEFAULT_VAL_FRACTION


@pytest.fixture
def command(tmp_path):
    for name in "abcdef":
        (tmp_path / f"{name}.txt").write_text(f"the text of {name}; " * 30)
    options = ["prepare", "--source", "text", "--out", str(tmp_path / "data"), "--seq_len", "8"]
    options += ["--tokenizer", "bpe:270", "--paths", f"{tmp_path}/[abcd].txt"]
    return [*options, "--val_paths", f"{tmp_path}/[ef].txt"]


def test_the_summary_shows_counts_and_fingerprint(command, tmp_path, capsys):
    """Without it, the user would not know what was made."""
    assert main(command) == 0
    out = capsys.readouterr().out
    assert f"{tmp_path / 'data'} prepared from text in" in out
    assert "train            4" in out
    assert "val              2" in out
    assert "documents skipped: 0 empty, 0 duplicates, 0 undecodable" in out
    assert "tokenizer bpe:270 (270 tokens), T = 8, fingerprint " in out


def test_again_says_that_it_is_complete(command, capsys):
    """Without it, somebody would wait for work that is done."""
    main(command)
    capsys.readouterr()
    assert main(command) == 0
    assert "is already complete with these settings" in capsys.readouterr().out


def test_a_mistake_is_one_line_and_status_2(command, tmp_path, capsys):
    """Without it, a mistake would be a traceback or leave a directory behind."""
    assert main([*command, "--val_fraction", "2"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("looped prepare: error: val_fraction 2.0")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not (tmp_path / "data").exists()


def test_inspect_shows_counts_and_rows(command, tmp_path, capsys):
    """Without it, nobody could see what a directory holds or whether it is whole."""
    main(command)
    capsys.readouterr()
    assert main(["prepare", "--inspect", str(tmp_path / "data")]) == 0
    out = capsys.readouterr().out
    assert "holds every token that was prepared from text" in out
    assert "train            4" in out
    assert "  train row 0: '<|bos|>the text of a; " in out
    assert "  val row 1: " in out


def test_inspect_finds_damage(command, tmp_path, capsys):
    """Without it, a changed token in large data would never be noticed."""
    main(command)
    chunk = tmp_path / "data" / "val" / "chunk-0-0.bin"
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"\x7f")
    assert main(["prepare", "--inspect", str(tmp_path / "data")]) == 2
    assert "the tokens of val were changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--inspect", "d", "--out", "e"], "--inspect only looks: leave out --out"),
        (["--inspect", "d", "--seed", "0"], "--inspect only looks: leave out --seed"),
        (["--inspect", "d", "--val_fraction", "0.05"], "leave out --val_fraction"),
        (["--inspect", "d", "--packing", "concat"], "leave out --packing"),
        (["--inspect", "d", "--paths", "x"], "leave out --paths"),
        (["--inspect", "d", "--max_documents", "0"], "leave out --max_documents"),
        (["--source", "text"], "give --out"),
        (["--out", "d"], "give --source"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message, capsys):
    """Without it, one of them would be ignored."""
    assert main(["prepare", *options]) == 2
    assert message in capsys.readouterr().err


def test_the_default_share_shown_is_the_one_used(command, tmp_path, capsys):
    """Without it, --help would promise another validation share than the data gets."""
    with pytest.raises(SystemExit):
        main(["prepare", "--help"])
    assert f"validation (default: {DEFAULT_VAL_FRACTION})" in " ".join(
        capsys.readouterr().out.split()
    )
    main(command)
    assert read_prepared(tmp_path / "data").settings["val_fraction"] == DEFAULT_VAL_FRACTION


def test_a_separator_may_be_typed_with_escapes(command, tmp_path, capsys):
    """Without it, a line end could hardly be typed in a shell."""
    (tmp_path / "a.txt").write_text("one\n\ntwo\n\nthree " * 10)
    assert main([*command, "--separator", r"\n\n"]) == 0
    assert "duplicates" in capsys.readouterr().out


def test_help_does_not_import_what_it_does_not_need():
    """Without it, `looped prepare --help` would take seconds."""
    program = (
        "import sys; from looped.cli import main\n"
        "try: main(['prepare', '--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'litdata', 'numpy', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


@pytest.mark.slow
def test_the_standard_library_needs_no_choices(tmp_path, monkeypatch, capsys):
    """As the README types it: T = 128 and a BPE of 1,024 tokens, in data/stdlib."""
    monkeypatch.chdir(tmp_path)
    assert main(["prepare", "--source", "stdlib"]) == 0
    out = capsys.readouterr().out
    assert "data/stdlib prepared" in out
    assert "bpe:1024 (1024 tokens), T = 128" in out
