"""Run directories as training leaves them, without training."""

from pathlib import Path

from looped.record import Record, Validation
from tests.test_record import a_record, save_checkpoint

__all__ = ["record_of", "save_checkpoint", "write_run"]


def record_of(row, *, loss="own", **changes) -> Record:
    """The record of one row of a table of runs."""
    final = float(row["loss"]) if loss == "own" else loss
    values = {
        "run": str(row["run"]),
        "recipe": "baseline",
        "status": "complete",
        "seed": 0,
        "started": f"2026-11-30T00:00:00 {row['run']}",
        "model": {"recurrences": int(row["recurrences"]), "width": int(row["width"])},
        "params": {
            "n_once": int(row["n_once"]),
            "n_rec": int(row["n_rec"]),
            "injection": int(row["n_injection"]),
        },
        "flops": {"convention": "paper", "per_token": 10, "budget": int(row["budget_flops"])},
        "progress": {
            "step": 100,
            "tokens": int(row["tokens"]),
            "epochs": 0.5,
            "planned_steps": 100,
        },
        "data": {"fingerprint": "abc", "tokenizer": "bpe-512"},
        "validation": [
            Validation(
                step=step,
                tokens=int(row["tokens"]) * step // 100,
                train_flops=0,
                loss=value,
                bits_per_byte=None,
                tokens_evaluated=1000,
                recurrences=int(row["recurrences"]),
            )
            for step, value in ((50, 9.0), (100, final))
        ],
    }
    return a_record(**(values | changes))


def write_run(home: Path, record: Record, *, checkpoints=()) -> Path:
    """A run directory with its run.json and the named checkpoints."""
    home.mkdir(parents=True, exist_ok=True)
    record.write(home)
    for name in checkpoints:
        path = home / "checkpoints" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        save_checkpoint(path, record)
    return home
