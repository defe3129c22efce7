"""The record survives both of its homes and refuses what is not one."""

import json
import subprocess
import sys

import pytest
import torch

from looped.record import (
    CHECKPOINT_KEY,
    Record,
    RecordError,
    Validation,
    read_checkpoint,
    read_run_file,
)


def a_record(**changes) -> Record:
    entry = Validation(
        step=10,
        tokens=5120,
        train_flops=10**18 + 1,
        loss=3.25,
        bits_per_byte=None,
        tokens_evaluated=999,
        recurrences=4,
    )
    values = {
        "run": "r4-d32",
        "recipe": "baseline",
        "status": "complete",
        "seed": 0,
        "versions": {"looped": "0.1.0"},
        "started": "2026-11-30T00:00:00+00:00",
        "wall_s": 1.5,
        "model": {"width": 32},
        "params": {"n_once": 1, "n_rec": 2},
        "flops": {"convention": "paper", "per_token": 3},
        "progress": {"step": 10, "tokens": 5120},
        "validation": [entry],
        "data": None,
    }
    return Record(**(values | changes))


def save_checkpoint(path, record: Record | None) -> None:
    layer = torch.nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.zeros(1, 64)).sum().backward()
    optimizer.step()
    content = {"state_dict": layer.state_dict(), "optimizer_states": [optimizer.state_dict()]}
    if record is not None:
        content[CHECKPOINT_KEY] = record.as_json()
    torch.save(content, path)


def test_both_homes_give_the_same_record(tmp_path):
    """run.json and the checkpoint return exactly what was written, integers beyond 2**53 too."""
    record = a_record()
    record.write(tmp_path)
    save_checkpoint(tmp_path / "last.ckpt", record)
    assert read_run_file(tmp_path / "run.json") == record
    assert read_checkpoint(tmp_path / "last.ckpt") == record
    assert torch.load(tmp_path / "last.ckpt", weights_only=True)[CHECKPOINT_KEY] == record.as_json()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["last.ckpt", "run.json"]


def test_a_checkpoint_is_read_without_torch(tmp_path):
    """The fitter must not pay for torch: reading a checkpoint in a fresh process imports none."""
    save_checkpoint(tmp_path / "last.ckpt", a_record())
    code = (
        "import sys, pathlib; from looped.record import read_checkpoint; "
        f"print(read_checkpoint(pathlib.Path({str(tmp_path / 'last.ckpt')!r})).run); "
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "r4-d32"


def test_damaged_checkpoints_are_refused_with_a_reason(tmp_path):
    """Truncated, overwritten, foreign, and record-less files each say what they are."""
    good = tmp_path / "good.ckpt"
    save_checkpoint(good, a_record())
    content = good.read_bytes()
    (tmp_path / "short.ckpt").write_bytes(content[: len(content) // 2])
    middle = content.index(b"r4-d32")
    (tmp_path / "flipped.ckpt").write_bytes(content[:middle] + b"X" + content[middle + 1 :])
    (tmp_path / "text.ckpt").write_text("not a checkpoint")
    save_checkpoint(tmp_path / "foreign.ckpt", None)
    for name, words in {
        "short": "truncated",
        "flipped": "damaged",
        "text": "truncated or damaged",
        "foreign": "without the entry",
        "missing": "cannot be read",
    }.items():
        with pytest.raises(RecordError, match=words):
            read_checkpoint(tmp_path / f"{name}.ckpt")


def test_nothing_in_a_checkpoint_is_run(tmp_path):
    """A pickle that would execute a command is read as inert stand-ins."""

    class Attack:
        def __reduce__(self):
            return (open, (str(tmp_path / "pwned"), "w"))

    torch.save({CHECKPOINT_KEY: a_record().as_json(), "attack": Attack()}, tmp_path / "a.ckpt")
    assert read_checkpoint(tmp_path / "a.ckpt").run == "r4-d32"
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "schema 2"),
        ({"status": "fine"}, "'fine'"),
        ({"validation": [{"step": 1}]}, "lacks"),
        ({"validation": None}, "lacks"),
        ({"model": [1]}, "has model = "),
        ({"recipe": None}, "has recipe = None"),
        ({"data": "text"}, "has data = "),
        ({"validation": [a_record().as_json()["validation"][0] | {"loss": "3"}]}, "loss is '3'"),
    ],
)
def test_what_is_not_a_record_is_refused(tmp_path, change, words):
    """Another schema or a missing field is an error, not a half-filled record."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps(a_record().as_json() | change))
    with pytest.raises(RecordError, match=words):
        read_run_file(path)


def test_a_record_cannot_hold_nan(tmp_path):
    """NaN is not JSON: a run that would write one fails loudly and leaves no file."""
    with pytest.raises(ValueError, match="JSON compliant"):
        a_record(wall_s=float("nan")).write(tmp_path)
    assert list(tmp_path.iterdir()) == []
