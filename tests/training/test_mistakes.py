"""Mistakes of the user: one line, exit status 2, nothing half-written."""

import subprocess
import sys
import zipfile

import pytest

from looped.cli import main
from looped.file_lock import lock
from looped.record import CHECKPOINT_DIR, LAST_CHECKPOINT, LOCK_FILE
from tests.training.conftest import fit, tree


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model.width=17"], "width 17 is not divisible by num_heads 2"),
        (["--model.recurrences=0"], "recurrences 0"),
        (["--model.truncation_depth=0"], "truncation_depth 0"),
        (["--model.truncation_depth=4"], "truncation_depth 4 is above recurrences 3"),
        (["--model.streams=0"], "streams 0"),
        (["--model.streams=2", "--model.injection=none"], "streams 2 together with injection none"),
        (["--model.recurences=2"], "did you mean model.recurrences?"),
        (["--model.optimizer.momentum=1"], "there is model.optimizer_args"),
        (["--modle.width=2"], "did you mean model.width?"),
        (["--model.width=wide"], "model.width: got wide, expected a whole number"),
        (["--data.data_dir=nowhere"], "nowhere"),
        (["--model.vocab_size=301"], "vocab_size 301"),
        (["--model.seq_len=8"], "seq_len 8"),
        (["--horizon.steps=0"], "horizon.steps 0"),
        (["--horizon.tokens=1000"], "horizon.tokens and horizon.steps"),
        (["--horizon.steps=null"], "got none"),
        (["--data.batch_size=100000"], "100000"),
        (["--ckpt_path=last"], "does not exist"),
        (["--config=nowhere.yaml"], "nowhere.yaml"),
        (["--trainer.accelerator=abacus"], "abacus"),
        (["--trainer.devices=0"], "devices"),
        (["--trainer.fast_dev_run=true"], "--horizon.steps 5"),
        (["--trainer.accumulate_grad_batches=0"], "accumulated"),
        (["--seed_everything=-5"], "seed_everything"),
        (["--divergence.check_every_n_steps=0"], "divergence.check_every_n_steps 0"),
        (["--model.logit_softcap=.inf"], "logit_softcap inf"),
        (["--model.embed_lr=.inf"], "embed_lr inf"),
        (["--run.dir="], "run.dir is empty"),
        (["--run.dir=/proc/nope"], "/proc/nope cannot be written"),
        (
            ["--trainer.strategy={class_path: lightning.pytorch.strategies.ModelParallelStrategy}"],
            "trainer.strategy ModelParallelStrategy is not supported",
        ),
        (["--compute.convention=fast"], "compute.convention: got fast, expected paper, causal"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_mistakes_are_one_line_and_leave_nothing(config, tmp_path, capsys, arguments, words):
    """What is wrong and where; status 2, no traceback, no run directory."""
    assert fit(config, *arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("looped fit: error: ")
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_files_in_the_wrong_place(config, tmp_path, capsys):
    """Binary garbage as configuration, a file as run directory: one line each."""
    garbage = tmp_path / "garbage.yaml"
    garbage.write_bytes(bytes(range(256)))
    for argument, words in (
        (f"--config={garbage}", "garbage.yaml: not YAML"),
        (f"--run.dir={garbage}", "is a file"),
    ):
        assert fit(config, argument) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


def test_a_key_given_twice(config, tmp_path, capsys):
    """The last of the two counted, and nothing told that the first did not; file or the text."""
    twice = tmp_path / "twice.yaml"
    twice.write_text("model:\n  recurrences: 2\n  recurrences: 3\n")
    inline = "--config=model: {recurrences: 2,\n recurrences: 3}"
    for arguments, words in (
        (("--config", str(twice)), f"--config {twice}: the key recurrences on line 3 repeats"),
        ((inline,), "--config model: {recurrences: 2, recurrences: 3}: the key recurrences on"),
    ):
        assert fit(config, *arguments) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_two_processes_do_not_train_into_one_directory(config, tmp_path, capsys):
    """Both would write the same curve and checkpoints; the second is refused."""
    (tmp_path / "run").mkdir()
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import time; from pathlib import Path; "
            "from looped.run_directory import _sole_writer; "
            f"lock = _sole_writer(Path({str(tmp_path / 'run')!r})); print(1, flush=True); "
            "time.sleep(100)",
        ],
        stdout=subprocess.PIPE,
    )
    holder.stdout.readline()
    assert fit(config) == 2
    assert "another process is training" in capsys.readouterr().err
    holder.kill()
    holder.wait()
    assert fit(config) == 0


def test_a_checkpoint_of_another_model_is_named(config, tmp_path, capsys):
    """With other heads it would give a loss of nothing; with another width, a traceback."""
    assert fit(config, "--trainer.max_steps=7") == 0
    capsys.readouterr()
    other = ("--ckpt_path=last", "--model.num_heads=4")
    for command, arguments, words in (
        ("validate", other, "num_heads 4 instead of 2"),
        ("validate", ("--ckpt_path=last", "--model.recurrences=5"), "--model.eval_recurrences"),
        ("fit", ("--ckpt_path=last", "--model.width=32"), "width 32 instead of 16"),
        ("validate", (), "name the checkpoint to evaluate"),
    ):
        assert main([command, f"--config={config}", *arguments]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


def test_a_checkpoint_with_damaged_tensors_is_refused(config, tmp_path, capsys):
    """The record reads well, the weights would not."""
    assert fit(config, "--trainer.max_steps=7") == 0
    path = (tmp_path / "run" / "checkpoints" / "last.ckpt").resolve()
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        tensor = next(i for i in archive.infolist() if "/data/" in i.filename and i.file_size > 99)
    content[tensor.header_offset + len(tensor.filename) + 150] ^= 0xFF
    path.write_bytes(content)
    capsys.readouterr()
    assert fit(config, "--ckpt_path=last") == 2
    error = capsys.readouterr().err
    assert "damaged at" in error
    assert f"or remove {tmp_path / 'run'} to start anew" in error
    path.write_bytes(content[: len(content) // 2])  # the disk was full
    assert fit(config, "--ckpt_path=last") == 2
    error = capsys.readouterr().err
    assert "truncated or damaged" in error
    assert f"or remove {tmp_path / 'run'} to start anew" in error


def test_an_unknown_key_in_the_yaml_offers_the_nearest(config, tmp_path, capsys):
    config.write_text(config.read_text().replace("recurrences:", "recurences:"))
    assert fit(config) == 2
    assert "did you mean model.recurrences?" in capsys.readouterr().err


def test_a_used_directory_is_refused(config, tmp_path, capsys):
    """A new run where one lies is refused with the way on; what lies there is untouched."""
    assert fit(config) == 0
    before = {p: (tmp_path / "run" / p).stat().st_mtime_ns for p in tree(tmp_path / "run")}
    assert fit(config) == 2
    assert "--ckpt_path last" in capsys.readouterr().err
    assert before == {p: (tmp_path / "run" / p).stat().st_mtime_ns for p in before}
    assert tree(tmp_path / "run") == sorted(before)


def test_a_directory_at_work_is_left_to_who_works_there(config, tmp_path, capsys):
    """To resume is no way on while another process trains; it has left a checkpoint already."""
    checkpoint = tmp_path / "run" / CHECKPOINT_DIR / LAST_CHECKPOINT
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_text("")
    with lock(tmp_path / "run" / LOCK_FILE):
        assert fit(config) == 2
    assert "another process is training in" in capsys.readouterr().err
