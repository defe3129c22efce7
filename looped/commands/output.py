"""Where commands write: refused before anything is computed, written whole or not at all."""

import os
from pathlib import Path

from looped.errors import UserError

STDOUT = "-"
"""Stands for standard output in the place of a file."""


def check_json(target: str | None) -> None:
    """Refuse a file that `write_json` could not write, before anything is computed."""
    check_file("--json", target)


def check_file(option: str, target: str | None) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    if target is None or target == STDOUT:
        return
    if not target:
        raise UserError(f"{option} names no file")
    path = Path(target)
    if path.is_dir():
        raise UserError(f"{option} {path} cannot be written: it is a directory")
    if not path.parent.is_dir():
        raise UserError(f"{option} {path} cannot be written: there is no directory {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{option} {path} cannot be written: {path.parent} is read-only")


def check_folder(path: Path, option: str) -> None:
    """Refuse a directory that cannot be made or written into; makes none."""
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise UserError(f"{option} {path} cannot be written: {there} is no directory")
    if not os.access(there, os.W_OK):
        raise UserError(f"{option} {path} cannot be written: {there} is read-only")


def write_json(target: str, content: object) -> None:
    """Write JSON whole into a file, or to standard output."""
    import json

    write_text("--json", target, text=json.dumps(content, indent=2, allow_nan=False) + "\n")


def write_text(option: str, target: str, *, text: str) -> None:
    """Write text whole into the file that an option names, or to standard output."""
    from looped.atomic_write import write_atomically

    if target == STDOUT:
        print(text, end="")
        return
    try:
        write_atomically(Path(target), text)
    except OSError as error:
        raise UserError(f"{option} {target} cannot be written: {error.strerror}") from error
