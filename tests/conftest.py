"""Shared by all tests: reference figures, a tiny corpus, and one thread per process.

The models here are so small that a second thread only waits for the first; on a busy machine the
suite takes several times as long with it.
"""

import os
import random
from pathlib import Path

import pytest

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported, and for every subprocess

from looped.datamodules.prepare import prepare  # imports torch

DATA = Path(__file__).parent / "data"

WORDS = ["the", "loop", "runs", "again", "and", "until", "café", "naïve", "日本", "Ünïcode", "🙂"]
WORDS += ["tokens\n\tif", "x:", "return"]
SEQ_LEN = 16


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    """Sixty text files of made-up words, about 40 kB together."""
    directory = tmp_path_factory.mktemp("corpus")
    words = random.Random(1)
    for number in range(60):
        text = " ".join(words.choices(WORDS, k=words.randint(20, 200)))
        (directory / f"{number:03}.txt").write_text(f"{number} {text}", encoding="utf-8")
    return directory


@pytest.fixture(scope="session")
def prepared(corpus, tmp_path_factory) -> Path:
    """The corpus, prepared; tests must not write into it."""
    out = tmp_path_factory.mktemp("prepared") / "data"
    prepare(
        source="text",
        paths=[f"{corpus}/*.txt"],
        out=out,
        seq_len=SEQ_LEN,
        tokenizer="bpe:300",
        val_fraction=0.3,
    )
    return out
