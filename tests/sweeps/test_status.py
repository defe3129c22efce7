"""Where a run stands, from files alone."""

import fcntl

import pytest

from looped.record import LOCK_FILE
from looped.sweeps.failures import clear_failure, failure_of, record_failure
from looped.sweeps.locks import is_held, lock_path, take_lock
from looped.sweeps.status import status_of
from tests.test_record import a_record


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "sweep" / "run"


def _record(directory, status):
    directory.mkdir(parents=True, exist_ok=True)
    a_record(status=status).write(directory)


@pytest.mark.parametrize("status", ["complete", "diverged", "stopped"])
def test_the_record_speaks_for_a_run_nobody_trains(directory, status):
    assert status_of(directory) == "planned"
    _record(directory, status)
    assert status_of(directory) == status


def test_running_is_what_holds_the_lock(directory):
    """A record says `running` long after its process was killed; the lock does not."""
    lock = take_lock(directory)
    assert is_held(directory)
    assert status_of(directory) == "running"
    _record(directory, "running")
    lock.close()
    assert not is_held(directory)
    assert lock_path(directory).exists()
    assert status_of(directory) == "stopped"


def test_one_holder_at_a_time(directory):
    """The second is told so at once; closing the file is all it takes to let go."""
    first = take_lock(directory)
    assert take_lock(directory) is None
    first.close()
    second = take_lock(directory)
    assert second is not None
    second.close()


def test_running_is_also_what_holds_the_run_directory(directory):
    """`looped fit` by hand or by another scheduler: the lock of its own, whatever locks/ has."""
    take_lock(directory).close()
    _record(directory, "running")
    assert status_of(directory) == "stopped"
    with (directory / LOCK_FILE).open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert is_held(directory)
        assert status_of(directory) == "running"
    assert status_of(directory) == "stopped"


def test_failures(directory):
    """Recorded, shown, forgotten on request; a run that completes after all is complete."""
    record_failure(directory, "out of memory")
    assert failure_of(directory) == "out of memory"
    assert status_of(directory) == "failed"
    _record(directory, "complete")
    assert status_of(directory) == "complete"
    clear_failure(directory)
    assert failure_of(directory) is None


def test_a_damaged_failure_record_is_still_a_failure(directory):
    record_failure(directory, "x")
    (directory.parent / "failed" / "run.json").write_text("{")
    assert "unreadable" in failure_of(directory)
    assert status_of(directory) == "failed"
