"""A dataset of the Hugging Face hub, streamed: nothing but the documents in use is stored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from looped.datamodules.input_files import InputFile, inventory
from looped.datamodules.sources import Document, SourceRequest
from looped.datamodules.table_sources import DEFAULT_COLUMN, text_of
from looped.errors import UserError

# Short names for datasets that are used often: (dataset, subset).
PRESETS = {"fineweb-edu": ("HuggingFaceFW/fineweb-edu", "sample-10BT")}


class HubDataset:
    """The rows of a dataset's `train` split, one document each.

    Args:
        dataset: name on the hub, or a local directory of the same layout.
        subset: configuration of the dataset; null takes its default one.
        column: name of the column of the text.
    """

    undecodable = 0

    def __init__(self, dataset: str, *, subset: str | None, column: str) -> None:
        self.name = dataset if subset is None else f"{dataset}:{subset}"
        self._dataset = dataset
        self._subset = subset
        self._column = column

    def documents(self) -> Iterator[Document]:
        """Every row in the dataset's order.

        Raises:
            UserError: `datasets` is not installed, the dataset cannot be reached, it has no such
                column, or something else than text in it.
        """
        for row in self._rows():
            if self._column not in row:
                raise UserError(
                    f"no column {self._column!r} in dataset {self.name}: it has {', '.join(row)};"
                    " name the text's with --column"
                )
            yield Document(text_of(row[self._column], self._column, f"dataset {self.name}"))

    def size_bytes(self) -> int | None:
        """Unknown before it is read."""
        return None

    def inventory(self) -> dict[str, Any]:
        """Number, size and digest of a local directory's files; nothing for a name on the hub."""
        root = Path(self._dataset)
        if not root.is_dir():
            return {}
        paths = [path for path in root.rglob("*") if path.is_file() and not _is_hidden(path, root)]
        return inventory([InputFile(str(path)) for path in sorted(paths)])

    def _rows(self) -> Iterator[dict[str, Any]]:
        try:
            yield from self._open()
        except UserError:
            raise
        except Exception as error:  # whatever the library and its HTTP client raise
            raise UserError(f"cannot read dataset {self.name}: {_reason(error)}") from error

    def _open(self) -> Any:
        try:
            import datasets
        except ImportError as error:
            raise UserError("source hub needs datasets: pip install 'looped[hub]'") from error
        try:
            return datasets.load_dataset(self._dataset, self._subset, split="train", streaming=True)
        except Exception as error:  # whatever the library and its HTTP client raise
            raise UserError(f"cannot open dataset {self.name}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _is_hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def hub_source(request: SourceRequest) -> HubDataset:
    """The source that the request describes; a preset's name stands for its dataset."""
    assert request.dataset is not None  # open_source has checked it
    dataset, subset = PRESETS.get(request.dataset, (request.dataset, None))
    return HubDataset(
        dataset, subset=request.subset or subset, column=request.column or DEFAULT_COLUMN
    )
