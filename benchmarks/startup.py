"""How long commands that train nothing take to start.

python benchmarks/startup.py        half a minute
"""

import statistics
import subprocess
import sys
import time

from measuring import report

LIMIT_S = 1.0
COMMANDS = (
    ["--help"],
    ["phi", "--help"],
    ["count", "--config", "configs/demo.yaml"],
)


def seconds_of(command: list[str]) -> float:
    """Wall-clock time of a command in a process of its own."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "looped", *command], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    for command in COMMANDS:
        seconds_of(command)  # the first start reads the files from the disk
        median_s = statistics.median(seconds_of(command) for _ in range(5))
        report(
            f"looped {' '.join(command)}",
            f"{median_s:.2f} s",
            f"<= {LIMIT_S:.0f} s",
            met=median_s <= LIMIT_S,
        )


if __name__ == "__main__":
    main()
