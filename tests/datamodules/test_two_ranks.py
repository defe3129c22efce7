"""Two processes share the rows: none twice, none left out of the validation, nobody waits."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from litdata import StreamingDataset
from litdata.streaming.item_loader import TokensLoader

from looped.datamodules.prepared_data import read_prepared

from .conftest import SEQ_LEN

ROOT = Path(__file__).parents[2]


def count_rows(batches) -> Counter:
    return Counter(tuple(row) for batch in batches for row in batch)


def stored_inputs(prepared, split) -> Counter:
    rows = StreamingDataset(str(prepared / split), item_loader=TokensLoader(SEQ_LEN + 1))
    return count_rows([[row[:-1].tolist() for row in rows]])


@pytest.mark.slow
def test_two_ranks_train_apart_and_validate_every_row_once(prepared, tmp_path):
    """Without it, ranks would train on the same rows, or hang in the last validation batch."""
    subprocess.run(
        [sys.executable, str(Path(__file__).with_name("two_ranks.py")), str(prepared), tmp_path],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=180,
        check=True,
        capture_output=True,
    )
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)]
    data = read_prepared(prepared)

    steps = data.train.rows // 6
    assert [len(rank["train"]) for rank in ranks] == [2 * steps, 2 * steps]
    for epoch in range(2):
        batches = slice(epoch * steps, (epoch + 1) * steps)
        seen = count_rows([batch for rank in ranks for batch in rank["train"][batches]])
        assert seen.total() == 6 * steps
        assert seen <= stored_inputs(prepared, "train")

    assert len(ranks[0]["val"]) == len(ranks[1]["val"])
    once = len(ranks[0]["val"]) // 2  # one validation per epoch
    seen = count_rows([batch for rank in ranks for batch in rank["val"][:once]])
    assert seen == stored_inputs(prepared, "val")
