"""The learning rate over a run: linear from its full value to a tenth (DESIGN.md section 4)."""

FINAL_FRACTION = 0.1


def linear_decay(step: int, steps: int) -> float:
    """Factor on the learning rate of one optimizer step.

    Args:
        step: 0 for the first, steps - 1 for the last.
        steps: planned steps of the run.

    Returns:
        1 at the first step, FINAL_FRACTION at the last and after it.
    """
    done = min(step / max(steps - 1, 1), 1.0)
    return 1.0 - (1.0 - FINAL_FRACTION) * done
