"""The progress display shows what goes by and changes nothing."""

import pytest

from looped.datamodules.progress import PrepareProgress
from looped.datamodules.split import SplitDocument

DOCUMENTS = [SplitDocument("x" * 10, 10, held_out=False)] * 5


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("total", [None, 50])
def test_documents_pass_unchanged(wanted, total, capsys):
    """Without it, watching the progress would change the data, or mix with the summary."""
    with PrepareProgress(wanted=wanted, total_bytes=total) as progress:
        assert list(progress.follow(DOCUMENTS, "working")) == DOCUMENTS
    captured = capsys.readouterr()
    assert captured.out == ""
    assert wanted or captured.err == ""
