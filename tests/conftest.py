"""Shared by all tests: where the reference figures lie, and one thread per process.

The models here are so small that a second thread only waits for the first; on a busy machine the
suite takes several times as long with it.
"""

import os
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported, and for every subprocess

DATA = Path(__file__).parent / "data"
