"""Runs that failed, with their error: not tried again until someone asks for it.

<sweep>/failed/<run>.json
"""

import json
from datetime import UTC, datetime
from pathlib import Path

from looped.atomic_write import write_atomically

FAILURE_DIR = "failed"


def failure_path(directory: Path) -> Path:
    """Where the failure of the run in this run directory is recorded."""
    return directory.parent / FAILURE_DIR / f"{directory.name}.json"


def record_failure(directory: Path, error: str) -> None:
    """Record what went wrong, in one line.

    Raises:
        OSError: it cannot be written.
    """
    path = failure_path(directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "run": directory.name,
        "error": error,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_atomically(path, json.dumps(content, indent=2) + "\n")


def failure_of(directory: Path) -> str | None:
    """The recorded error of a run; null when there is none."""
    try:
        return str(json.loads(failure_path(directory).read_text(encoding="utf-8"))["error"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"its failure record is unreadable: {error}"


def clear_failure(directory: Path) -> None:
    """Forget the failure of a run, so that it is tried again."""
    failure_path(directory).unlink(missing_ok=True)
