"""Text to a prepared directory: complete, or not there at all.

Everything is written into a hidden directory beside the target, read back and counted, and only
then renamed into place. An interrupted preparation leaves nothing that could be mistaken for data,
and the next one starts from the beginning.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from looped.datamodules.encoding import encode_documents
from looped.datamodules.make_tokenizer import bpe_size, load_tokenizer, train_bpe
from looped.datamodules.packing import PACKERS, Packer, Tokens
from looped.datamodules.prepared_data import (
    DATA_FILE,
    SPLITS,
    TOKENIZER_FILE,
    PreparedData,
    Split,
    read_prepared,
    sha256_of,
)
from looped.datamodules.progress import PrepareProgress
from looped.datamodules.row_store import RowWriter, token_type
from looped.datamodules.sources import Source, SourceRequest, open_source
from looped.datamodules.split import DocumentSplit
from looped.datamodules.staging import staging_directory
from looped.datamodules.tokenizer import Tokenizer
from looped.errors import UserError

DEFAULT_VAL_FRACTION = 0.05

Packing = Literal["concat", "best_fit"]


@dataclass(frozen=True, kw_only=True)
class PrepareSummary:
    """What `prepare` did.

    Attributes:
        out: the prepared directory.
        already_complete: true when it was there, with the same settings, and nothing was done.
        elapsed_s: seconds it took.
        data: counts, settings and fingerprint.
    """

    out: Path
    already_complete: bool
    elapsed_s: float
    data: PreparedData


def prepare(
    *,
    source: str,
    out: str | Path,
    seq_len: int,
    tokenizer: str,
    paths: Sequence[str] = (),
    val_paths: Sequence[str] = (),
    separator: str | None = None,
    bos: str | None = None,
    seed: int = 0,
    val_fraction: float = DEFAULT_VAL_FRACTION,
    packing: Packing = "concat",
    show_progress: bool = False,
) -> PrepareSummary:
    """Turn text into training and validation rows in `out`.

    Args:
        source: `stdlib`, the library of the running Python, or `text`, the files in `paths`.
        out: directory to make; it may exist when it is empty, or complete with these settings.
        seq_len: T, targets per row; rows have T + 1 tokens.
        tokenizer: `bpe:N`, trained on the training documents; `bytes`; a tokenizer.json; or a
            name on the Hugging Face hub.
        bos: spelling of the token that begins a document, for a tokenizer.json or hub name; null
            looks for a usual one.
        paths: files or globs of the source.
        val_paths: files or globs whose documents are the validation split; then nothing is drawn.
        separator: text between two documents of a file; null takes each file as one document.
        seed: of the split.
        val_fraction: expected share of validation documents, between 0 and 1.
        packing: `concat` puts the documents one after the other and cuts the line into rows;
            `best_fit` begins each row with a document and crops documents that do not fit.
        show_progress: draw a progress display on stderr.

    Returns:
        What was made, or found already complete.

    Raises:
        UserError: a value that cannot be, a directory in use, text that does not suffice, or a
            disk that is full. `out` is then as it was.
    """
    started = time.perf_counter()
    out = Path(out)
    if seq_len < 1:
        raise UserError(f"seq_len {seq_len}: a row needs at least 1 target")
    if not 0.0 < val_fraction < 1.0:
        raise UserError(f"val_fraction {val_fraction}: the validation share lies between 0 and 1")
    if packing not in PACKERS:
        raise UserError(f"unknown packing {packing!r}: choose {' or '.join(PACKERS)}")
    request = SourceRequest(
        name=source, paths=tuple(paths), val_paths=tuple(val_paths), separator=separator
    )
    text = open_source(request)
    settings = {
        "source": text.name,
        "source_bytes": text.size_bytes(),
        "paths": list(paths),
        "val_paths": list(val_paths),
        "separator": separator,
        "tokenizer": tokenizer,
        "bos": bos,
        "seq_len": seq_len,
        "seed": seed,
        "val_fraction": val_fraction,
        "packing": packing,
    }
    data = _already_complete(out, settings)
    already_complete = data is not None
    if data is None:
        with staging_directory(out) as staging:
            data = _Preparation(text, settings, show_progress=show_progress).write(staging)
            data.verify(staging, full=True)
    return PrepareSummary(
        out=out,
        already_complete=already_complete,
        elapsed_s=time.perf_counter() - started,
        data=data,
    )


def _already_complete(out: Path, settings: dict[str, Any]) -> PreparedData | None:
    """What `out` holds when it was prepared with these settings; null when it is free."""
    if not out.exists():
        return None
    if out.is_dir() and not (out / DATA_FILE).exists():
        if any(out.iterdir()):
            raise UserError(f"{out} holds other files: name a new directory with --out")
        return None
    data = read_prepared(out)
    differences = [
        f"{name} {data.settings.get(name)!r} instead of {settings.get(name)!r}"
        for name in data.settings | settings
        if data.settings.get(name) != settings.get(name)
    ]
    if differences:
        raise UserError(
            f"{out} was prepared with {', '.join(differences)}:"
            " name another directory, or remove this one"
        )
    data.verify(out)
    return data


class _Preparation:
    """One run from a source to a directory."""

    def __init__(self, source: Source, settings: dict[str, Any], *, show_progress: bool) -> None:
        self._source = source
        self._settings = settings
        self._split = DocumentSplit(
            source, seed=settings["seed"], val_fraction=settings["val_fraction"]
        )
        self._progress = PrepareProgress(wanted=show_progress, total_bytes=source.size_bytes())

    def write(self, directory: Path) -> PreparedData:
        """Fill `directory`; data.json comes last."""
        with self._progress:
            tokenizer = self._tokenizer()
            stored_tokenizer = tokenizer.to_json()
            (directory / TOKENIZER_FILE).write_text(stored_tokenizer, encoding="utf-8")
            splits = self._rows(directory, tokenizer)
        data = PreparedData(
            settings=self._settings,
            source=self._source.name,
            tokenizer=self._settings["tokenizer"],
            tokenizer_sha256=sha256_of(stored_tokenizer.encode("utf-8")),
            vocab_size=tokenizer.vocab_size,
            bos=tokenizer.bos,
            seq_len=self._settings["seq_len"],
            dtype=np.dtype(token_type(tokenizer.vocab_size)).name,
            skipped=asdict(self._split.skipped),
            train=splits["train"],
            val=splits["val"],
        )
        data.write(directory)
        return data

    def _tokenizer(self) -> Tokenizer:
        specification = self._settings["tokenizer"]
        vocab_size = bpe_size(specification)
        if vocab_size is None:
            return load_tokenizer(specification, bos=self._settings["bos"])
        documents = self._progress.follow(self._split.documents(), "training the tokenizer")
        return train_bpe((d.text for d in documents if not d.held_out), vocab_size)

    def _rows(self, directory: Path, tokenizer: Tokenizer) -> dict[str, Split]:
        seq_len = self._settings["seq_len"]
        outputs = {
            name: _SplitOutput(
                name,
                packer=PACKERS[self._settings["packing"]](
                    row_length=seq_len + 1, bos=tokenizer.bos
                ),
                writer=RowWriter(
                    directory / name,
                    row_length=seq_len + 1,
                    dtype=token_type(tokenizer.vocab_size),
                ),
            )
            for name in SPLITS
        }
        documents = self._progress.follow(self._split.documents(), "encoding and packing")
        for document, tokens in encode_documents(documents, tokenizer):
            outputs["val" if document.held_out else "train"].add(tokens, document.bytes)
        return {name: output.finish(seq_len) for name, output in outputs.items()}


class _SplitOutput:
    """Packer, writer and counts of one split."""

    def __init__(self, name: str, *, packer: Packer, writer: RowWriter) -> None:
        self._name = name
        self._packer = packer
        self._writer = writer
        self._bytes = 0

    def add(self, tokens: Tokens, text_bytes: int) -> None:
        self._bytes += text_bytes
        for rows in self._packer.add(tokens):
            self._writer.write(rows)

    def finish(self, seq_len: int) -> Split:
        for rows in self._packer.finish():
            self._writer.write(rows)
        counts = self._packer.counts
        if counts.documents == 0:
            raise UserError(
                f"no document fell into the {self._name} split: give more documents, another"
                " --seed or another --val_fraction"
            )
        if counts.rows == 0:
            raise UserError(
                f"the {counts.tokens} tokens of the {self._name} split do not fill one row of"
                f" seq_len {seq_len} + 1: use a smaller --seq_len or more text"
            )
        stored = self._writer.close()
        return Split(
            documents=counts.documents,
            bytes=self._bytes,
            tokens=counts.tokens,
            cropped=counts.cropped,
            rows=stored.rows,
            rows_per_chunk=stored.rows_per_chunk,
            sha256=stored.sha256,
        )
