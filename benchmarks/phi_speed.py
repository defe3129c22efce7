"""How long `looped phi` takes, start-up included, against what is promised.

    python benchmarks/phi_speed.py        half a minute

Fits the 116 published runs with 1,000 resamples (under 10 s on two cores), and reads the record of
a checkpoint of 200 MB (under 0.1 s).
"""

import pickle
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from measuring import report

from looped.record import CHECKPOINT_KEY, Record, read_checkpoint

FIT_LIMIT_S, CHECKPOINT_LIMIT_S = 10.0, 0.1


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


def main() -> None:
    """Measure and print."""
    fit_s = min(command_s("phi", "--published", "--resamples", "1000") for _ in range(2))
    report(
        "looped phi --published --resamples 1000 (116 runs), start-up included",
        f"{fit_s:.1f} s",
        f"<= {FIT_LIMIT_S:.0f} s",
        met=fit_s <= FIT_LIMIT_S,
    )
    read_s = checkpoint_s()
    report(
        "record of a checkpoint of 200 MB",
        f"{read_s * 1e3:.1f} ms",
        f"<= {CHECKPOINT_LIMIT_S * 1e3:.0f} ms",
        met=read_s <= CHECKPOINT_LIMIT_S,
    )


if __name__ == "__main__":
    main()
