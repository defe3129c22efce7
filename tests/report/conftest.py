"""Pages to look at, made once."""

from pathlib import Path

import pytest

from looped.cli import main
from looped.scaling.published import RUNS_FILE


@pytest.fixture(scope="session")
def published_page(tmp_path_factory) -> Path:
    """Both published recipes, one file left out; tests must not write into it."""
    folder = tmp_path_factory.mktemp("published")
    out, bad = folder / "report", folder / "bad"
    bad.mkdir()
    (bad / "run.json").write_text('{"schema": 1}')
    options = ("--estimator=least_squares", "--resamples=20", f"--out={out}")
    assert main(["report", str(RUNS_FILE), str(bad), *options]) == 0
    return out / "index.html"
