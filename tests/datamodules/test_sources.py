"""A source is asked for by name, with the options that it has."""

import pytest

from looped.datamodules.sources import OPTIONS, SourceRequest, check_options, open_source
from looped.errors import UserError


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (SourceRequest(name="stdlb"), "unknown source 'stdlb': did you mean stdlib"),
        (SourceRequest(name="?"), "choose stdlib, text"),
        (SourceRequest(name="text"), "source text needs to be told where: give --paths"),
        (SourceRequest(name="hub"), "source hub needs to be told where: give --dataset"),
        (SourceRequest(name="stdlib", paths=("a",)), "source stdlib takes no paths"),
        (SourceRequest(name="jsonl", separator="x"), "source jsonl takes no separator"),
        (SourceRequest(name="text", column="x"), "source text takes no column"),
    ],
)
def test_a_request_that_cannot_be_is_refused(request_, message):
    """Without it, an option would be ignored or a traceback shown."""
    with pytest.raises(UserError, match=message):
        check_options(request_)


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "packed-parquet"])
def test_every_source_of_documents_opens(name, tmp_path):
    """Without it, a source would be listed but not reachable."""
    (tmp_path / "a").write_text("{}")
    options = {
        "paths": (str(tmp_path / "a"),) if "paths" in OPTIONS[name] else (),
        "dataset": str(tmp_path) if "dataset" in OPTIONS[name] else None,
    }
    source = open_source(SourceRequest(name=name, **options))
    assert isinstance(source.inventory(), dict)
    assert source.name
