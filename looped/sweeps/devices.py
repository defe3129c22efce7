"""Which CUDA devices each of several jobs on this machine sees."""

import os
import subprocess
from collections.abc import Sequence

from looped.sweeps.base import Base

VISIBLE = "CUDA_VISIBLE_DEVICES"
PATIENCE_S = 30


def devices_for(base: Base) -> list[str]:
    """The CUDA devices to divide between jobs; none when runs train elsewhere or name theirs."""
    return cuda_devices() if base.takes_any_gpu else []


def cuda_devices() -> list[str]:
    """The CUDA devices of this machine, as CUDA_VISIBLE_DEVICES names them.

    Asks the driver's own tool: torch would take seconds to import, and the launcher needs none.
    """
    named = os.environ.get(VISIBLE)
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--list-gpus"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    listed = [line for line in answer.stdout.splitlines() if line.startswith("GPU ")]
    return [str(number) for number in range(len(listed))]


def shares(devices: Sequence[str], count: int) -> list[dict[str, str]]:
    """The environment that shows each of `count` jobs its devices.

    Args:
        devices: to divide; none leaves the environments empty.
        count: jobs at a time.

    Returns:
        One environment per job: equal shares of neighbours as far as they divide; with fewer
        devices than jobs, one each, in turn.
    """
    if not devices:
        return [{} for _ in range(count)]
    total = len(devices)
    own = [
        devices[job * total // count : (job + 1) * total // count] or [devices[job % total]]
        for job in range(count)
    ]
    return [{VISIBLE: ",".join(share)} for share in own]
