"""A sweep of seconds on the tiny corpus."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import SEQ_LEN


@pytest.fixture
def write_grid(tmp_path, prepared):
    """Writes base.yaml and grid.yaml, with changes; returns the grid's path."""

    def write(base_changes: dict[str, Any] | None = None, **changes: Any) -> Path:
        content: dict[str, Any] = {
            "run": {"dir": "set by the sweep"},
            "horizon": {"steps": 5},  # the sweep's own horizon must take its place
            "model": {"width": 8, "num_heads": 1, "vocab_size": 300, "seq_len": SEQ_LEN},
            "data": {"data_dir": str(prepared), "batch_size": 4},
            "trainer": {"accelerator": "cpu"},
            "checkpoints": {"every_n_steps": 4},
        }
        (tmp_path / "base.yaml").write_text(yaml.safe_dump(content | (base_changes or {})))
        grid = {
            "base": str(tmp_path / "base.yaml"),
            "out": str(tmp_path / "sweep"),
            "effective_depth": 4,
            "prelude_layers": 1,
            "coda_layers": 1,
            "head_dim": 8,
            "recurrences": [1, 2],
            "tokens": {"6.4e2": [8, 16]},  # 10 steps of 4 x 16 tokens
            "min_steps": 1,
        }
        grid = {k: v for k, v in (grid | changes).items() if v is not None}
        path = tmp_path / "grid.yaml"
        path.write_text(yaml.safe_dump(grid))
        return path

    return write
