"""Turn text into tokens on disk: a directory that `looped fit` streams from.

    looped prepare --source stdlib --out data/stdlib --seq_len 128 --tokenizer bpe:1024

(for stdlib these are the defaults). The directory is complete or not there at all. The same
command again finds it complete, and

    looped prepare --inspect data/stdlib

checks every token of it and shows what it holds.
"""

import argparse
from typing import TYPE_CHECKING

from looped.datamodules.split import DEFAULT_VAL_FRACTION
from looped.errors import UserError

if TYPE_CHECKING:
    from looped.datamodules.prepared_data import PreparedData, Split

# The library of Python needs no choices to be a first corpus.
_STDLIB_DEFAULTS = {"out": "data/stdlib", "seq_len": 128, "tokenizer": "bpe:1024"}

_ROWS_SHOWN = 2
_CHARACTERS_SHOWN = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--source",
        help="stdlib: the library of the running Python, nothing to download; text, jsonl, parquet:"
        " the files in --paths; hub: the Hugging Face dataset --dataset; packed-parquet: rows of"
        " token ids in the directory --paths",
    )
    parser.add_argument(
        "--inspect", metavar="DIR", help="check a prepared directory and show what it holds"
    )
    parser.add_argument("--out", metavar="DIR", help="directory to make")
    parser.add_argument("--seq_len", type=int, metavar="T", help="targets per row; tokens")
    parser.add_argument(
        "--tokenizer",
        help="bpe:N: N tokens, trained on the training documents; bytes; a tokenizer.json; a name"
        " on the Hugging Face hub",
    )
    parser.add_argument(
        "--bos",
        metavar="TOKEN",
        help="the token that begins a document (default: the usual one of the tokenizer)",
    )
    parser.add_argument(
        "--paths", nargs="+", default=(), metavar="FILE", help="files, URLs or globs"
    )
    parser.add_argument(
        "--val_paths",
        nargs="+",
        default=(),
        metavar="FILE",
        help="files, URLs or globs whose documents are the validation split",
    )
    parser.add_argument(
        "--separator",
        metavar="TEXT",
        help=r"what stands between two documents of a file, \n for a line end (default: a file"
        " is a document)",
    )
    parser.add_argument(
        "--column", metavar="NAME", help="field that holds the text (default: text)"
    )
    parser.add_argument(
        "--dataset",
        metavar="NAME",
        help="name on the Hugging Face hub, a local directory like one, or the preset fineweb-edu",
    )
    parser.add_argument(
        "--subset", metavar="NAME", help="configuration of the dataset (default: its own default)"
    )
    parser.add_argument(
        "--max_documents", type=int, metavar="N", help="read only the first N documents"
    )
    parser.add_argument(
        "--packing",
        help="concat: one line of documents cut into rows; best_fit: each row begins with a"
        " document, what does not fit is cropped (default: concat)",
    )
    parser.add_argument("--seed", type=int, help="of the split (default: 0)")
    parser.add_argument(
        "--val_fraction",
        type=float,
        help=f"share of the documents held out for validation (default: {DEFAULT_VAL_FRACTION})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prepare a directory, or look into one, and print what it holds."""
    if arguments.inspect is not None:
        return _inspect(arguments)
    from looped.datamodules.prepare import prepare

    if arguments.source == "stdlib":
        for option, value in _STDLIB_DEFAULTS.items():
            if getattr(arguments, option) is None:
                setattr(arguments, option, value)
    for option in ("source", "out"):
        if getattr(arguments, option) is None:
            raise UserError(f"give --{option} (see looped prepare --help)")
    summary = prepare(
        source=arguments.source,
        out=arguments.out,
        seq_len=arguments.seq_len,
        tokenizer=arguments.tokenizer,
        bos=arguments.bos,
        paths=arguments.paths,
        val_paths=arguments.val_paths,
        separator=_unescaped(arguments.separator),
        column=arguments.column,
        dataset=arguments.dataset,
        subset=arguments.subset,
        max_documents=arguments.max_documents,
        packing=arguments.packing,
        seed=arguments.seed,
        val_fraction=arguments.val_fraction,
        show_progress=True,
    )
    if summary.already_complete:
        print(f"{summary.out} is already complete with these settings: nothing to do")
    else:
        print(f"{summary.out} prepared from {summary.data.source} in {summary.elapsed_s:.1f} s")
    _print_counts(summary.data)
    return 0


def _inspect(arguments: argparse.Namespace) -> int:
    from looped.datamodules.inspection import inspect_prepared

    for option, value in vars(arguments).items():
        if option not in ("inspect", "command_line") and value not in (None, ()):
            raise UserError(f"--inspect only looks: leave out --{option}")
    data, rows = inspect_prepared(arguments.inspect, rows_per_split=_ROWS_SHOWN)
    print(f"{arguments.inspect} holds every token that was prepared from {data.source}")
    _print_counts(data)
    for row in rows:
        shown = (
            row.text if len(row.text) <= _CHARACTERS_SHOWN else row.text[:_CHARACTERS_SHOWN] + "..."
        )
        print(f"  {row.split} row {row.number}: {shown!r}")
    return 0


def _unescaped(separator: str | None) -> str | None:
    """Line ends and tabs, which are hard to type in a shell."""
    if separator is None:
        return None
    return separator.replace("\\n", "\n").replace("\\t", "\t")


def _print_counts(data: "PreparedData") -> None:
    print(f"  {'':<6}{'documents':>12}{'MB':>10}{'tokens':>16}{'cropped':>15}{'rows':>12}")
    for name, split in (("train", data.train), ("val", data.val)):
        print(f"  {name:<6}{_counts(split)}")
    if data.skipped:
        skipped = ", ".join(f"{count} {reason}" for reason, count in data.skipped.items())
        print(f"  documents skipped: {skipped}")
    print(
        f"  tokenizer {data.tokenizer or 'unknown'} ({data.vocab_size} tokens), T = {data.seq_len},"
        f" fingerprint {data.fingerprint}"
    )


def _counts(split: "Split") -> str:
    return (
        f"{split.documents:>12,}{split.bytes / 1e6:>10,.2f}{split.tokens:>16,}"
        f"{split.cropped:>15,}{split.rows:>12,}"
    )
