"""A directory is read alike wherever it lies."""

import os
import shutil
import subprocess
import sys

import fsspec
import pytest

from looped.datamodules.directory import Directory
from looped.datamodules.prepared_data import read_prepared
from looped.errors import UserError


@pytest.fixture(params=["path", "local", "url"])
def directory(request, tmp_path):
    if request.param == "url":
        memory = fsspec.filesystem("memory")
        memory.pipe({"/looped-dir/a/file": b"0123456789"})
        yield Directory("memory://looped-dir/a")
        memory.rm("/looped-dir", recursive=True)
        return
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"0123456789")
    yield Directory(("local:" if request.param == "local" else "") + str(tmp_path / "a"))


def test_files_are_read_and_measured(directory):
    """Without it, data in an object store could not be opened."""
    assert directory.exists()
    assert directory.is_directory()
    assert not directory.is_empty()
    assert directory.read("file") == b"0123456789"
    assert (directory.size("file"), directory.size("none")) == (10, None)
    assert b"".join(directory.blocks("file", skip=4)) == b"456789"
    with pytest.raises(OSError, match="none"):
        directory.read("none")


def test_what_is_not_there_does_not_exist(directory):
    """Without it, a typing error would look like an empty directory."""
    assert not directory.joined("none").exists()
    assert not directory.joined("file").is_directory()


@pytest.mark.parametrize(
    ("address", "remote"), [("/a/b", False), ("s3://a/b", True), ("local:/a/b", True)]
)
def test_remote_is_what_costs(address, remote):
    """Without it, opening a run's data would download all of it."""
    assert Directory(address).is_remote == remote
    assert Directory.at(Directory(address)) == Directory(address)
    assert str(Directory(address).joined("c")) == f"{address}/c"


def test_an_unknown_protocol_is_one_line():
    """Without it, a missing package would be a traceback of fsspec."""
    with pytest.raises(UserError, match="cannot reach nowhere://x"):
        Directory("nowhere://x").exists()


def test_prepared_data_in_an_object_store_is_verified(prepared):
    """Without it, a copy that broke off would be trained on."""
    memory = fsspec.filesystem("memory")
    memory.put(str(prepared), "/looped-data", recursive=True)
    try:
        data = read_prepared("memory://looped-data")
        assert data == read_prepared(prepared)
        data.verify("memory://looped-data", full=True)
        memory.rm("/looped-data/val/chunk-0-0.bin")
        with pytest.raises(UserError, match=r"val/chunk-0-0.bin is missing"):
            data.verify("memory://looped-data")
    finally:
        memory.rm("/looped-data", recursive=True)


def test_a_remote_directory_streams_the_same_batches(prepared, tmp_path):
    """Without it, a run would see other rows once its data lies elsewhere; also after an update."""
    program = (
        "import sys, torch\n"
        "from looped.datamodules.token_data import TokenDataModule\n"
        "def batches(address):\n"
        "    data = TokenDataModule(address, batch_size=8)\n"
        "    data.setup('fit')\n"
        "    loaders = (data.train_dataloader(), data.val_dataloader())\n"
        "    return torch.cat([targets for l in loaders for _, targets in l])\n"
        "here, there = sys.argv[1:]\n"
        "assert torch.equal(batches(here), batches('local:' + there))\n"
    )
    there = shutil.copytree(prepared, tmp_path / "there")
    environment = os.environ | {"LITDATA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", program, str(prepared), str(there)]
    subprocess.run(command, env=environment, check=True)
    assert list((tmp_path / "cache").rglob("chunk-0-0.bin"))
