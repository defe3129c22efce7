"""Documents to rows: split, tokenise, pack and write."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from looped.datamodules.encoding import encode_documents
from looped.datamodules.make_tokenizer import bpe_size, check_bos, load_tokenizer, train_bpe
from looped.datamodules.packing import PACKERS, Packer, Tokens
from looped.datamodules.prepared_data import (
    SPLITS,
    TOKENIZER_FILE,
    PreparedData,
    Split,
    sha256_of,
)
from looped.datamodules.progress import PrepareProgress
from looped.datamodules.row_store import RowWriter, token_type
from looped.datamodules.sources import Source
from looped.datamodules.split import DocumentSplit
from looped.datamodules.tokenizer import Tokenizer
from looped.errors import UserError


@dataclass(frozen=True, kw_only=True)
class DocumentRows:
    """How the documents of a source become the rows of a prepared directory.

    Attributes:
        source: where the documents come from.
        seq_len: T, targets per row.
        tokenizer: its specification (make_tokenizer.py).
        bos: spelling of the token that begins a document; null looks for a usual one.
        packing: a key of `PACKERS`.
        seed: of the split.
        val_fraction: expected share of validation documents.
        max_documents: read only so many documents; null reads all.

    Raises:
        UserError: a value that cannot be; the message names it.
    """

    source: Source
    seq_len: int
    tokenizer: str
    bos: str | None
    packing: str
    seed: int
    val_fraction: float
    max_documents: int | None

    def __post_init__(self) -> None:
        if self.packing not in PACKERS:
            raise UserError(f"unknown packing {self.packing!r}: choose {' or '.join(PACKERS)}")
        if not 0.0 < self.val_fraction < 1.0:
            raise UserError(
                f"val_fraction {self.val_fraction}: the validation share lies between 0 and 1"
            )
        if not -(2**63) <= self.seed < 2**63:
            raise UserError(f"seed {self.seed}: use one of 64 bits")
        if self.max_documents is not None and self.max_documents < 1:
            raise UserError(f"max_documents {self.max_documents}: read at least 1 document")
        bpe_size(self.tokenizer)  # refuses a size that cannot be
        check_bos(self.tokenizer, self.bos)

    def inventory(self) -> dict[str, Any]:
        """What tells that the source is another than last time."""
        return {"name": self.source.name} | self.source.inventory()

    def write(self, directory: Path, *, settings: dict[str, Any], progress: bool) -> PreparedData:
        """Fill `directory`; data.json comes last.

        Args:
            directory: an empty directory.
            settings: what was asked for, to be stored.
            progress: draw a progress display on stderr.

        Raises:
            UserError: the text does not suffice, or an input cannot be read.
        """
        split = DocumentSplit(
            self.source,
            seed=self.seed,
            val_fraction=self.val_fraction,
            max_documents=self.max_documents,
        )
        with PrepareProgress(wanted=progress, total_bytes=self.source.size_bytes()) as display:
            tokenizer = self._tokenizer(split, display)
            stored_tokenizer = tokenizer.to_json()
            (directory / TOKENIZER_FILE).write_text(stored_tokenizer, encoding="utf-8")
            splits = self._rows(directory, tokenizer, split, display)
        data = PreparedData(
            settings=settings,
            source=self.source.name,
            tokenizer=self.tokenizer,
            tokenizer_sha256=sha256_of(stored_tokenizer.encode("utf-8")),
            vocab_size=tokenizer.vocab_size,
            bos=tokenizer.bos,
            seq_len=self.seq_len,
            dtype=np.dtype(token_type(tokenizer.vocab_size)).name,
            skipped=asdict(split.skipped),
            **splits,
        )
        data.write(directory)
        return data

    def _tokenizer(self, split: DocumentSplit, display: PrepareProgress) -> Tokenizer:
        vocab_size = bpe_size(self.tokenizer)
        if vocab_size is None:
            return load_tokenizer(self.tokenizer, bos=self.bos)
        documents = display.follow(split.documents(), "training the tokenizer")
        return train_bpe((d.text for d in documents if not d.held_out), vocab_size)

    def _rows(
        self,
        directory: Path,
        tokenizer: Tokenizer,
        split: DocumentSplit,
        display: PrepareProgress,
    ) -> dict[str, Split]:
        outputs = {
            name: _SplitOutput(
                name,
                packer=PACKERS[self.packing](row_length=self.seq_len + 1, bos=tokenizer.bos),
                writer=RowWriter(
                    directory / name,
                    row_length=self.seq_len + 1,
                    dtype=token_type(tokenizer.vocab_size),
                ),
            )
            for name in SPLITS
        }
        documents = display.follow(split.documents(), "encoding and packing")
        for document, tokens in encode_documents(documents, tokenizer):
            outputs["val" if document.held_out else "train"].add(tokens, document.bytes)
        if sum(output.documents for output in outputs.values()) == 0:
            raise UserError(f"source {self.source.name} holds no text at all")
        for name, output in outputs.items():
            if output.documents == 0:
                raise UserError(self._no_document(name, split))
        return {name: output.finish(self.seq_len) for name, output in outputs.items()}

    def _no_document(self, name: str, split: DocumentSplit) -> str:
        """Why a split is empty, and what to do about it."""
        if not split.is_named:
            return (
                f"no document fell into the {name} split: give more documents, another --seed or"
                " another --val_fraction"
            )
        skipped = ", ".join(f"{count} {reason}" for reason, count in asdict(split.skipped).items())
        remedy = f"other files in --{'val_paths' if name == 'val' else 'paths'}"
        if self.max_documents is not None and name == "train":
            remedy += " or more --max_documents (validation documents are read first)"
        return f"no document is left for the {name} split (skipped: {skipped}): give {remedy}"


class _SplitOutput:
    """Packer, writer and counts of one split."""

    def __init__(self, name: str, *, packer: Packer, writer: RowWriter) -> None:
        self._name = name
        self._packer = packer
        self._writer = writer
        self._bytes = 0

    @property
    def documents(self) -> int:
        return self._packer.counts.documents

    def add(self, tokens: Tokens, text_bytes: int) -> None:
        self._bytes += text_bytes
        for rows in self._packer.add(tokens):
            self._writer.write(rows)

    def finish(self, seq_len: int) -> Split:
        for rows in self._packer.finish():
            self._writer.write(rows)
        counts = self._packer.counts
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
