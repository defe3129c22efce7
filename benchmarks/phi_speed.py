"""How long `looped phi` takes, start-up included, against what is promised.

    python benchmarks/phi_speed.py

Fits the 116 published runs with 1,000 block bootstrap resamples (under 10 s on two cores), asks for
--help (under 1 s), and reads the record of a checkpoint of 200 MB (under 0.1 s).
"""

import pickle
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from looped.record import CHECKPOINT_KEY, Record, read_checkpoint

LIMITS_S = {"looped phi --help": 1.0, "looped phi --published": 10.0, "200 MB checkpoint": 0.1}


def command_s(*arguments: str) -> float:
    """Wall-clock seconds of one command in a fresh process."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "looped", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def checkpoint_s(megabytes: int = 200) -> float:
    """Seconds to read the record of an archive laid out like a checkpoint with one large tensor."""
    record = Record(
        run="r4-d32",
        recipe="baseline",
        status="complete",
        seed=0,
        versions={},
        started="2026-11-30T00:00:00+00:00",
        wall_s=1.0,
        model={},
        params={},
        flops={},
        progress={},
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "last.ckpt"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            content = pickle.dumps({CHECKPOINT_KEY: record.as_json()}, protocol=2)
            archive.writestr("last/data.pkl", content)
            archive.writestr("last/data/0", bytes(megabytes * 2**20))
        started = time.perf_counter()
        read_checkpoint(path)
        return time.perf_counter() - started


def main() -> int:
    """Measure, print, and fail if a limit is exceeded."""
    measured = {
        "looped phi --help": command_s("phi", "--help"),
        "looped phi --published": command_s("phi", "--published", "--resamples", "1000"),
        "200 MB checkpoint": checkpoint_s(),
    }
    for name, seconds in measured.items():
        print(f"{name:<24} {seconds:6.3f} s   (limit {LIMITS_S[name]:g} s)")
    return int(any(seconds > LIMITS_S[name] for name, seconds in measured.items()))


if __name__ == "__main__":
    sys.exit(main())
