"""The learning rate over a run: a factor for every optimizer step, both from the planned horizon.

linear    the paper's recipe: from 1 at the first step to a tenth at the last
wsd       warm-up, stable, decay: from near 0 to 1, then 1, then down to a tenth at the last
"""

from typing import Literal

ScheduleName = Literal["linear", "wsd"]

FINAL_FRACTION = 0.1


def linear_decay(step: int, steps: int) -> float:
    """Factor of the paper's recipe (DESIGN.md section 4).

    Args:
        step: 0 for the first optimizer step, steps - 1 for the last.
        steps: planned steps of the run.

    Returns:
        1 at the first step, FINAL_FRACTION at the last and after it.
    """
    done = min(step / max(steps - 1, 1), 1.0)
    return 1.0 - (1.0 - FINAL_FRACTION) * done


def warmup_stable_decay(
    step: int, steps: int, *, warmup_fraction: float, decay_fraction: float
) -> float:
    """Factor of a schedule whose middle part is constant.

    Args:
        step: 0 for the first optimizer step, steps - 1 for the last.
        steps: planned steps of the run.
        warmup_fraction: share of the steps that rise linearly to 1.
        decay_fraction: share of the steps that fall linearly, as `linear_decay` does.

    Returns:
        A factor in (0, 1].
    """
    warmup = round(warmup_fraction * steps)
    decay = round(decay_fraction * steps)
    if step < warmup:
        return (step + 1) / (warmup + 1)
    if step < steps - decay:
        return 1.0
    return linear_decay(step - (steps - decay), decay)
