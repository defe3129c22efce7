"""Shared by all tests: where the reference figures lie."""

from pathlib import Path

DATA = Path(__file__).parent / "data"
