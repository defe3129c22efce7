"""A way to prepare the tiny corpus of tests/conftest.py with changed settings."""

import pytest

from looped.datamodules.prepare import prepare
from tests.conftest import SEQ_LEN


@pytest.fixture
def prepare_corpus(corpus):
    """Prepares the corpus again, with changes."""

    def run(out, **changes):
        settings = {
            "source": "text",
            "paths": [f"{corpus}/*.txt"],
            "seq_len": SEQ_LEN,
            "tokenizer": "bpe:300",
            "val_fraction": 0.3,
        }
        return prepare(out=out, **(settings | changes))

    return run
