"""What a resumed run sets otherwise than its start before: the part the resume guard cannot see.

Model, data, horizon and recipe stand in the checkpoint and are compared there
(callbacks/resume_guard.py); the settings of the trainer stand only in the configuration that each
start leaves in the run directory.
"""

from pathlib import Path
from typing import Any

import yaml

from looped.errors import UserError
from looped.record import CONFIG_FILE

# Settings of the trainer that change what is learnt.
EXPERIMENT = ("trainer.precision", "trainer.gradient_clip_val", "trainer.gradient_clip_algorithm")
# Compared in the checkpoint, or of one start only.
ELSEWHERE = ("model.", "horizon.", "run.", "seed_everything", "ckpt_path", "weights_only", "allow_")


def changed_settings(
    checkpoint: Path, configuration: str, *, allow_changes: bool
) -> dict[str, tuple[Any, Any]]:
    """Settings that differ from the newest configuration beside a checkpoint, to be named.

    Args:
        checkpoint: the checkpoint that is resumed, in the `checkpoints` folder of its run.
        configuration: the whole configuration of this start, as YAML.
        allow_changes: return also those that make it another experiment.

    Returns:
        Dotted name -> value before and value now; empty where no configuration lies.

    Raises:
        UserError: a setting that changes what is learnt differs.
    """
    newest = newest_configuration(checkpoint.parent.parent)
    if newest is None:
        return {}
    before = _flat(yaml.safe_load(newest.read_text(encoding="utf-8")))
    now = _flat(yaml.safe_load(configuration))
    changed = {
        name: (before[name], now[name])
        for name in before
        if name in now and before[name] != now[name] and not name.startswith(ELSEWHERE)
    }
    forbidden = [name for name in changed if name in EXPERIMENT and not allow_changes]
    if forbidden:
        listed = "; ".join(f"{n} {changed[n][1]} instead of {changed[n][0]}" for n in forbidden)
        raise UserError(
            f"the checkpoint is of another experiment: {listed}. Take these changes back, choose "
            "another --run.dir, or insist with --allow-changes"
        )
    return changed


def newest_configuration(run_dir: Path) -> Path | None:
    """The configuration of a run's newest start; null where none lies."""
    stem = CONFIG_FILE.removesuffix(".yaml")
    kept = sorted(run_dir.glob(f"{stem}*.yaml"), key=lambda path: path.stat().st_mtime)
    return kept[-1] if kept else None


def _flat(content: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(content, dict) or not content:
        return {prefix: content}
    flat: dict[str, Any] = {}
    for name, value in content.items():
        flat |= _flat(value, f"{prefix}.{name}" if prefix else str(name))
    return flat
