"""Text to a prepared directory: complete, or not there at all.

Everything is written into a hidden directory beside the target, read back and counted, and only
then renamed into place. An interrupted preparation leaves nothing that could be mistaken for data,
and the next one starts from the beginning.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from looped.datamodules.document_rows import DocumentRows
from looped.datamodules.packed_rows import PackedRows
from looped.datamodules.prepared_data import DATA_FILE, PreparedData, read_prepared, sha256_of
from looped.datamodules.sources import SourceRequest, check_options, open_source
from looped.datamodules.split import DEFAULT_VAL_FRACTION
from looped.datamodules.staging import staging_directory
from looped.errors import UserError

Packing = Literal["concat", "best_fit"]
DEFAULT_PACKING: Packing = "concat"


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
    seq_len: int | None = None,
    tokenizer: str | None = None,
    bos: str | None = None,
    paths: Sequence[str] = (),
    val_paths: Sequence[str] = (),
    separator: str | None = None,
    column: str | None = None,
    dataset: str | None = None,
    subset: str | None = None,
    max_documents: int | None = None,
    packing: Packing | None = None,
    seed: int | None = None,
    val_fraction: float | None = None,
    show_progress: bool = False,
) -> PrepareSummary:
    """Turn text into training and validation rows in `out`.

    Args:
        source: `stdlib`, the library of the running Python; `text`, `jsonl` or `parquet`, the
            files in `paths`; `hub`, a Hugging Face dataset; or `packed-parquet`, rows of token
            ids in the directory `paths`.
        out: directory to make; it may exist when it is empty, or complete with these settings.
        seq_len: T, targets per row; rows have T + 1 tokens. Packed rows bring their own.
        tokenizer: `bpe:N`, trained on the training documents; `bytes`; a tokenizer.json; or a
            name on the Hugging Face hub. Packed rows may do without.
        bos: spelling of the token that begins a document, for a tokenizer.json or hub name; null
            looks for a usual one. Those trained here and `bytes` have their own.
        paths: files, URLs or globs of the source.
        val_paths: files, URLs or globs whose documents are the validation split; then nothing is
            drawn.
        separator: text between two documents of a text file; null takes each file as one document.
        column: name of the field that holds the text; null means `text`.
        dataset: name of a Hugging Face dataset, a local directory like one, or `fineweb-edu`.
        subset: configuration of that dataset; null takes its default one.
        max_documents: read only so many documents; null reads all.
        packing: `concat` puts the documents one after the other and cuts the line into rows;
            `best_fit` begins each row with a document and crops documents that do not fit; null
            means `concat`. Packed rows take none of `packing`, `seed`, `val_fraction`, `bos` and
            `max_documents`.
        seed: of the split; null means 0.
        val_fraction: expected share of validation documents, between 0 and 1; null means
            `DEFAULT_VAL_FRACTION`.
        show_progress: draw a progress display on stderr.

    Returns:
        What was made, or found already complete.

    Raises:
        UserError: a value that cannot be, a directory in use, text that does not suffice, or a
            disk that is full. `out` is then as it was.
    """
    started = time.perf_counter()
    out = _target(out)
    request = SourceRequest(
        name=source,
        paths=tuple(paths),
        val_paths=tuple(val_paths),
        separator=separator,
        column=column,
        dataset=dataset,
        subset=subset,
    )
    check_options(request)
    if seq_len is not None and seq_len < 1:
        raise UserError(f"seq_len {seq_len}: a row needs at least 1 target")
    rows: DocumentRows | PackedRows
    if source == "packed-parquet":
        _refuse_given(
            bos=bos,
            max_documents=max_documents,
            packing=packing,
            seed=seed,
            val_fraction=val_fraction,
        )
        rows = PackedRows(directory=_one(request.paths), seq_len=seq_len, tokenizer=tokenizer)
    elif seq_len is None:
        raise UserError(f"source {source} needs a row length: give --seq_len, in tokens")
    elif tokenizer is None:
        raise UserError(f"source {source} needs a tokenizer: give --tokenizer, e.g. bpe:1024")
    else:
        packing = DEFAULT_PACKING if packing is None else packing
        seed = 0 if seed is None else seed
        val_fraction = DEFAULT_VAL_FRACTION if val_fraction is None else val_fraction
        rows = DocumentRows(
            source=open_source(request),
            seq_len=seq_len,
            tokenizer=tokenizer,
            bos=bos,
            packing=packing,
            seed=seed,
            val_fraction=val_fraction,
            max_documents=max_documents,
        )
    options = asdict(request)
    settings = {
        "source": options.pop("name"),
        **options,
        "inventory": rows.inventory(),
        "seq_len": seq_len,
        "tokenizer": tokenizer,
        "tokenizer_file": _file_hash(tokenizer),
        "bos": bos,
        "max_documents": max_documents,
        "packing": packing,
        "seed": seed,
        "val_fraction": val_fraction,
    }
    settings = json.loads(json.dumps(settings))  # as they will be read back
    data = _already_complete(out, settings)
    already_complete = data is not None
    if data is None:
        with staging_directory(out) as staging:
            data = rows.write(staging, settings=settings, progress=show_progress)
            data.verify(staging, full=True)
    return PrepareSummary(
        out=out,
        already_complete=already_complete,
        elapsed_s=time.perf_counter() - started,
        data=data,
    )


def _target(out: str | Path) -> Path:
    """The directory to make, once it is sure that it can be one."""
    if str(out) == "":
        raise UserError("--out is empty: name a directory")
    path = Path(out)
    try:
        is_other = path.exists() and not path.is_dir()
    except (OSError, ValueError) as error:  # a name that is too long, a place that is closed
        raise UserError(f"cannot use --out {out}: {error}") from error
    if is_other:
        raise UserError(f"--out {out} is a file: name a directory")
    return path


def _refuse_given(**options: Any) -> None:
    """Options of documents, which say nothing about rows that are packed already."""
    for name, value in options.items():
        if value is not None:
            raise UserError(f"source packed-parquet takes no {name}: its rows are packed already")


def _one(paths: Sequence[str]) -> str:
    if len(paths) != 1:
        raise UserError(
            f"source packed-parquet lies in one directory: give one --paths, not {len(paths)}"
        )
    return paths[0].rstrip("/")


def _file_hash(tokenizer: str | None) -> str | None:
    """What tells that a tokenizer.json is another than last time; null for other tokenizers."""
    try:
        if tokenizer is None or not Path(tokenizer).is_file():
            return None
        return sha256_of(Path(tokenizer).read_bytes())
    except OSError as error:
        raise UserError(f"cannot read tokenizer {tokenizer}: {error.strerror}") from error


def _already_complete(out: Path, settings: dict[str, Any]) -> PreparedData | None:
    """What `out` holds when it was prepared with these settings; null when it is free."""
    if not out.exists():
        return None
    if not (out / DATA_FILE).exists():
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
