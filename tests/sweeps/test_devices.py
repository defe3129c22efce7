"""GPUs divided between jobs, on a machine that may have none."""

import sys

import pytest

from looped.sweeps.devices import VISIBLE, cuda_devices, devices_for, shares
from looped.sweeps.grid import read_grid
from looped.sweeps.plan import plan_sweep
from looped.sweeps.workers import Workers


@pytest.mark.parametrize(
    ("count", "jobs", "expected"),
    [
        (2, 1, ["0,1"]),
        (2, 2, ["0", "1"]),
        (8, 2, ["0,1,2,3", "4,5,6,7"]),
        (8, 3, ["0,1", "2,3,4", "5,6,7"]),
        (2, 3, ["0", "0", "1"]),
        (1, 4, ["0", "0", "0", "0"]),
    ],
)
def test_shares(count, jobs, expected):
    """Every device is somebody's, nobody is without, and none is shared while there are enough."""
    devices = [str(number) for number in range(count)]
    found = [environment[VISIBLE] for environment in shares(devices, jobs)]
    assert sorted(found) == expected
    assert {name for share in found for name in share.split(",")} == set(devices)


def test_without_devices_nothing_is_set():
    assert shares([], 2) == [{}, {}]


def test_devices_that_the_user_names_are_divided(monkeypatch):
    """Their names are kept: indices, or the UUIDs of cards or of their slices."""
    monkeypatch.setenv(VISIBLE, "3, GPU-8932f937")
    assert [share[VISIBLE] for share in shares(cuda_devices(), 2)] == ["3", "GPU-8932f937"]
    monkeypatch.setenv(VISIBLE, "")
    assert cuda_devices() == []


def test_devices_are_counted_by_the_drivers_tool(monkeypatch, tmp_path):
    """A stand-in for nvidia-smi that lists two cards, one of them in slices; then none at all."""
    monkeypatch.delenv(VISIBLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cuda_devices() == []
    tool = tmp_path / "nvidia-smi"
    listed = [
        "GPU 0: NVIDIA H200 (UUID: GPU-a)",
        "  MIG 1g.18gb Device 0: (UUID: MIG-b)",
        "GPU 1: x",
    ]
    tool.write_text(f"#!{sys.executable}\nprint(*{listed!r}, sep=chr(10))\n")
    tool.chmod(0o755)
    assert cuda_devices() == ["0", "1"]


@pytest.mark.parametrize(
    ("trainer", "divided"),
    [
        ({"accelerator": "cpu"}, False),
        ({"devices": 1}, True),
        ({"accelerator": "gpu", "devices": "2"}, True),
        ({"devices": [1]}, False),
        ({"devices": "0,1"}, False),
    ],
    ids=str,
)
def test_runs_that_name_their_devices_keep_them(write_grid, monkeypatch, trainer, divided):
    """An index counts within what is visible: the second card of a share of one is none."""
    monkeypatch.setenv(VISIBLE, "0,1")
    base = plan_sweep(read_grid(write_grid({"trainer": trainer})))[0].base
    assert devices_for(base) == (["0", "1"] if divided else [])


def test_each_worker_sees_its_share(write_grid, monkeypatch, tmp_path):
    """Also the one that takes the place of a worker that died."""
    stub = tmp_path / "looped" / "sweeps"
    stub.mkdir(parents=True)
    for package in (stub.parent, stub):
        (package / "__init__.py").touch()
    (stub / "worker.py").write_text(
        "import json, os\n"
        "input()\n"
        f"error = os.environ[{VISIBLE!r}]\n"
        "print(json.dumps({'outcome': 'failed', 'error': error}), flush=True)\n"
    )
    monkeypatch.chdir(tmp_path)  # `python -m` looks here first
    runs = plan_sweep(read_grid(write_grid()))[:2]
    with Workers(2, devices=["4", "5"]) as workers:

        def answers():
            for run in runs:
                workers.start(run)
            errors = []
            while len(errors) < len(runs):
                errors += [reply.error for _, reply in workers.replies(1.0)]
            return sorted(errors)

        assert answers() == ["4", "5"]
        assert answers() == ["its worker ended with exit status 0"] * 2
        assert answers() == ["4", "5"]
