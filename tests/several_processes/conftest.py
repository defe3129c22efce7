"""Starts the two-process job once for all tests of this folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without what would place it in some job already."""
    jobs = ("SLURM_", "TORCHELASTIC_", "LOCAL_RANK", "RANK", "NODE_RANK", "WORLD_SIZE", "MASTER_")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(jobs)}
    return inherited | {"PYTHONPATH": str(ROOT)} | variables


@pytest.fixture(scope="session")
def two_processes(prepared, tmp_path_factory) -> Path:
    """What tests/several_processes/job.py leaves behind."""
    out = tmp_path_factory.mktemp("two_processes")
    job = subprocess.run(
        [sys.executable, "-m", "tests.several_processes.job", str(prepared), str(out)],
        env=environment(),
        cwd=ROOT,
        timeout=300,
        check=False,
        capture_output=True,
        text=True,
    )
    assert job.returncode == 0, job.stderr[:6000]  # who fails first speaks first
    return out
