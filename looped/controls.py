"""Controls: models that isolate the price of sharing or of the wiring (docs/beyond-phi.md).

unshared    a looped model in which every pass has blocks of its own: the same wiring, norms and
            compute, nothing shared
injected    a plain model (r = 1) with an injection or streams: the plain stack plus the wiring
"""

from collections.abc import Mapping
from typing import Any

CONTROLS = ("unshared", "injected")


def control_of(model: Mapping[str, Any]) -> str | None:
    """Which control a model is, by its constructor arguments; null for a looped or a plain one."""
    if model["recurrences"] > 1:
        return "unshared" if model.get("shared") is False else None
    wired = model.get("injection") not in (None, "none") or model.get("streams") not in (None, 1)
    return "injected" if wired else None
