"""Runs every benchmark and prints the table of docs/performance.md.

python benchmarks/table.py [--out FILE]      `make bench`; a quarter of an hour, machine idle
python benchmarks/table.py startup unrolled  these alone
"""

import argparse
import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARKS = (
    "trainer_overhead",
    "unrolled",
    "recurrence_memory",
    "loss_memory",
    "muonh_speed",
    "data_speed",
    "phi_speed",
    "startup",
    "sweep_overhead",
    "compile_blocks",
    "growth",
    "gpu",
)
LIBRARIES = ("torch", "lightning", "litdata", "numpy", "scipy", "lmfit")


def machine() -> str:
    """Processor, cores and versions."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    return (
        f"{model}, {cores} cores, load {load:.1f} at the start; Linux {platform.release()}, Python "
        f"{platform.python_version()}, {versions}"
    )


def lines_of(benchmark: str) -> list[list[str]]:
    """What one benchmark reports: verdict, what, measured, wanted."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, str(HERE / f"{benchmark}.py")],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = [line.split(" | ") for line in ran.stdout.splitlines() if " | " in line]
    if ran.returncode:
        lines.append(["MISS", benchmark, f"failed with exit status {ran.returncode}", "to run"])
    return [[cell.strip(" |") for cell in (*line, "")[:4]] for line in lines]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmarks", nargs="*", default=BENCHMARKS, metavar="BENCHMARK")
    print(f"{datetime.datetime.now(datetime.UTC).date()}, {machine()}\n")
    print("| what | measured | must reach | | benchmarks/ |\n| --- | --- | --- | --- | --- |")
    for benchmark in parser.parse_args().benchmarks:
        for verdict, what, measured, wanted in lines_of(benchmark):
            print(f"| {what} | {measured} | {wanted} | {verdict} | {benchmark}.py |", flush=True)


if __name__ == "__main__":
    main()
