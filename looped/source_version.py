"""Which source a run was trained with: the version, and the commit when it runs from a checkout."""

import subprocess
from pathlib import Path

from looped import __version__

PATIENCE_S = 10.0


def source_version(package: Path = Path(__file__).parent) -> str:
    """The version of looped, as a record names it.

    Args:
        package: directory of the package.

    Returns:
        `0.1.0` of an installed package; `0.1.0+b4af42c...` of one that git tracks, `.dirty` at the
        end when tracked files differ from that commit.
    """
    # Installed below somebody's own checkout, the package is not tracked there: not its commit.
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return __version__
    commit = _git(package, "rev-parse", "--short=12", "HEAD")
    changes = _git(package, "status", "--porcelain", "--untracked-files=no", ".")
    if commit is None:
        return __version__
    return f"{__version__}+{commit}{'.dirty' if changes else ''}"


def _git(directory: Path, *arguments: str) -> str | None:
    """What git prints; null when it fails or is not there."""
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
