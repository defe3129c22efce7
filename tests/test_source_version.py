"""A record names the commit that trained the run, and never somebody else's."""

import subprocess

import pytest

from looped import __version__
from looped.source_version import source_version


@pytest.fixture
def checkout(tmp_path):
    """A repository with one commit that holds pkg/__init__.py; the package's directory."""
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", "pkg")
    _git(tmp_path, "commit", "--quiet", "--message=first")
    return package


def _git(directory, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
    command = ["git", "-C", str(directory), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_of_a_checkout(checkout):
    commit = _git(checkout, "rev-parse", "HEAD")
    assert source_version(checkout) == f"{__version__}+{commit[:12]}"


def test_changes_that_no_commit_holds_are_told(checkout):
    (checkout / "__init__.py").write_text("changed = True\n")
    assert source_version(checkout).endswith(".dirty")


def test_files_that_git_does_not_track_change_nothing(checkout):
    (checkout / "notes.txt").write_text("")
    assert not source_version(checkout).endswith(".dirty")


def test_a_package_inside_a_foreign_checkout(checkout):
    """As in a virtual environment below the user's own repository."""
    installed = checkout / "site-packages" / "looped"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert source_version(installed) == __version__


def test_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert source_version(tmp_path) == __version__
