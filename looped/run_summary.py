"""The last words of `looped fit`: what the run reached, what it spent, what to type next."""

import shlex
from pathlib import Path
from typing import Any

import yaml

from looped.changed_settings import newest_configuration
from looped.quantities import duration, short
from looped.record import RUN_FILE, Record, read_run_file

# Settings of the trainer that end a run before its horizon, and the values that do not.
LIMITS = {"max_steps": -1, "max_epochs": -1, "max_time": None}


def run_summary(run_dir: Path) -> str:
    """Three lines about a run that has ended, one way or another.

    Args:
        run_dir: the directory that holds its record.

    Raises:
        RecordError: no record lies there.
    """
    record = read_run_file(run_dir / RUN_FILE)
    return "\n".join((_loss(record), _spent(record), f"in {run_dir}; {_next(record, run_dir)}"))


def _loss(record: Record) -> str:
    measured = [entry for entry in record.validation if entry.loss is not None]
    if record.status == "diverged":
        step = record.progress.get("diverged_step")
        text = "the final loss is no finite number"
        if step is not None:
            text = f"the training loss diverged at step {step:,}"
        return text + (f"; loss {measured[-1].loss:.4f} before" if measured else "")
    if not measured:
        return "loss not measured: the run ended before a validation"
    last = measured[-1]
    text = f"loss {last.loss:.4f} nats per token"
    if last.bits_per_byte is not None:
        text += f", {last.bits_per_byte:.4f} bits per byte"
    text += f", on {last.tokens_evaluated:,} validation tokens"
    late = last.step != record.progress["step"]
    return text + (f", measured at step {last.step:,}" if late else "")


def _spent(record: Record) -> str:
    flops, progress = record.flops, record.progress
    share = progress["tokens"] / progress["planned_tokens"]
    return (
        f"spent {flops['train']:.3g} FLOPs on {short(progress['tokens'])} tokens in "
        f"{duration(record.wall_s)}: {share:.0%} of the plan, step {progress['step']:,} of "
        f"{progress['planned_steps']:,}"
    )


def _next(record: Record, run_dir: Path) -> str:
    configuration = newest_configuration(run_dir)
    fit = f"looped fit {shlex.quote(f'--config={configuration}')}"
    if record.status == "complete":
        if any(path.parent != run_dir for path in run_dir.parent.glob(f"*/{RUN_FILE}")):
            return f"next, with the runs beside it: looped phi {shlex.quote(str(run_dir.parent))}"
        evaluate = fit.replace("fit", "validate", 1) + " --ckpt_path=last"
        return f"next: {evaluate} --model.eval_recurrences={2 * record.model['recurrences']}"
    if record.status == "diverged":
        return f"next, with a lower learning rate: {fit} --model.matrix_lr=... --run.dir=..."
    return " ".join((f"go on: {fit} --ckpt_path=last", *_lifted_limits(configuration)))


def _lifted_limits(configuration: Path | None) -> list[str]:
    """What takes limits out that would end the resumed run at once again."""
    if configuration is None:
        return []
    content: dict[str, Any] = yaml.safe_load(configuration.read_text(encoding="utf-8"))
    trainer = content.get("trainer") or {}
    return [
        f"--trainer.{name}={'null' if none is None else none}"
        for name, none in LIMITS.items()
        if trainer.get(name) not in (none, None)
    ]
