"""The data module under the Trainer: exact resume, every validation row, clear refusals."""

import inspect
import json
import shutil

import numpy as np
import pytest
import torch
from lightning import LightningModule, Trainer
from litdata import StreamingDataset
from litdata.streaming.item_loader import TokensLoader

from looped.datamodules.prepared_data import read_prepared
from looped.datamodules.token_data import TokenDataModule
from looped.datamodules.tokenizer import Tokenizer
from looped.errors import UserError

from .conftest import SEQ_LEN


class Watcher(LightningModule):
    """Notes the batches it is given."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.trained: list[list[list[int]]] = []
        self.validated: list[torch.Tensor] = []

    def training_step(self, batch, batch_idx):
        self.trained.append(batch[0].tolist())
        return self.weight.sum()

    def validation_step(self, batch, batch_idx):
        inputs, targets = batch
        self.validated.append(torch.cat([inputs, targets[:, -1:]], dim=1))

    test_step = validation_step

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def a_trainer(**changes) -> Trainer:
    settings = {
        "accelerator": "cpu",
        "devices": 1,
        "max_epochs": -1,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "limit_val_batches": 0,
    }
    return Trainer(**(settings | changes))


pytestmark = pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers")


@pytest.fixture
def data(prepared):
    def make(**changes) -> TokenDataModule:
        return TokenDataModule(str(prepared), **({"batch_size": 8} | changes))

    return make


def epoch_batches(data) -> int:
    data.setup("fit")
    return len(data.train_dataloader())


def fit(data, steps, *, resume=None, save=None) -> list[list[list[int]]]:
    model = Watcher()
    trainer = a_trainer(max_steps=steps)
    trainer.fit(model, data, ckpt_path=resume)
    if save:
        trainer.save_checkpoint(save)
    return model.trained


@pytest.mark.parametrize(
    ("place", "workers"),
    [
        ("first", 0),
        ("middle", 0),
        ("last but one", 0),
        ("end", 0),
        ("second epoch", 0),
        ("middle", 2),
        ("end", 2),
    ],
)
def test_stop_and_resume_trains_on_the_rows_of_a_straight_run(data, tmp_path, workers, place):
    """Without it, a resumed run would repeat rows, at once or one epoch later."""
    epoch = epoch_batches(data())
    done = {
        "first": 1,
        "middle": epoch // 2,
        "last but one": epoch - 1,
        "end": epoch,
        "second epoch": epoch + 3,
    }[place]
    total = 3 * epoch + 2
    straight = fit(data(), total)
    assert len(straight) == total
    head = fit(data(num_workers=workers), done, save=tmp_path / "a.ckpt")
    tail = fit(data(num_workers=workers), total, resume=tmp_path / "a.ckpt")
    assert head + tail == straight


def test_the_checkpoint_is_plain(data, tmp_path):
    """Without it, a checkpoint would not load with weights_only (pitfalls H)."""
    fit(data(num_workers=2), 2, save=tmp_path / "a.ckpt")
    content = torch.load(tmp_path / "a.ckpt", weights_only=True)
    hparams = content["datamodule_hyper_parameters"]
    assert hparams["batch_size"] == 8
    assert all(isinstance(v, str | int | None) for v in hparams.values())


def stored(prepared, split) -> torch.Tensor:
    rows = StreamingDataset(str(prepared / split), item_loader=TokensLoader(SEQ_LEN + 1))
    return torch.from_numpy(np.stack(list(rows)).astype(np.int64))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("run", ["validate", "test"])
def test_evaluation_sees_every_row_once_in_order(data, prepared, run, workers):
    """Without it, the validation loss would leave out the ragged last batch."""
    model = Watcher()
    trainer = a_trainer(limit_val_batches=1.0)
    getattr(trainer, run)(model, data(num_workers=workers), verbose=False)
    assert torch.equal(torch.cat(model.validated), stored(prepared, "val"))
    assert len(model.validated[-1]) == len(stored(prepared, "val")) % 8 != 0


def test_validation_happens_with_workers_and_ragged_rows(data):
    """Without it, training would 'succeed' without any validation (pitfalls D, 36)."""
    model = Watcher()
    a_trainer(
        max_steps=5,
        limit_val_batches=1.0,
        val_check_interval=5,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
    ).fit(model, data(num_workers=2))
    assert sum(len(rows) for rows in model.validated) > 0


def test_targets_are_the_inputs_one_later(data):
    """Without it, the model would learn to copy."""
    module = data()
    module.setup("fit")
    inputs, targets = next(iter(module.train_dataloader()))
    assert inputs.shape == targets.shape == (8, SEQ_LEN)
    assert inputs.dtype == targets.dtype == torch.int64
    assert torch.equal(inputs[:, 1:], targets[:, :-1])


def test_tokens_per_batch_is_batch_size_times_seq_len(data):
    """Without it, tokens would be counted T + 1 per row (pitfalls row 54)."""
    module = data()
    module.setup("fit")
    batch = next(iter(module.train_dataloader()))
    assert batch[1].numel() == module.batch_size * module.seq_len


def test_attributes_after_setup(data, prepared):
    """Without it, the record and bits per byte would describe other data."""
    module = data()
    module.setup("fit")
    stored_data = read_prepared(prepared)
    assert (module.seq_len, module.vocab_size) == (SEQ_LEN, 300)
    assert module.train_rows == stored_data.train.rows == len(stored(prepared, "train"))
    assert module.val_rows == stored_data.val.rows
    tokenizer = Tokenizer.from_json((prepared / "tokenizer.json").read_text())
    assert module.token_bytes.dtype == torch.int64
    assert module.token_bytes.tolist() == tokenizer.token_bytes().tolist()
    text = "naïve 🙂\n"
    (tokens,) = tokenizer.encode_batch([text])
    assert module.token_bytes[torch.from_numpy(tokens.astype(np.int64))].sum() == len(text.encode())
    description = module.describe()
    assert description == {
        "fingerprint": stored_data.fingerprint,
        "source": "text",
        "tokenizer": "bpe:300",
        "vocab_size": 300,
        "seq_len": SEQ_LEN,
    }
    assert json.loads(json.dumps(description)) == description


def test_expectations_that_are_met_pass(data):
    """Without it, a correct configuration would be refused."""
    data(seq_len=SEQ_LEN, vocab_size=300).setup("fit")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seq_len": 32}, r"the model has seq_len 32, the data in .* has 16: set"),
        ({"vocab_size": 512}, r"the model has vocab_size 512, the data in .* has 300: set"),
        ({"batch_size": 10**6}, r"training rows, fewer than one batch of 1000000 for each of 1"),
    ],
)
def test_data_that_does_not_fit_is_refused(data, changes, message):
    """Without it, a fit would fail inside the model or 'succeed' after no step at all."""
    with pytest.raises(UserError, match=message):
        data(**changes).setup("fit")


@pytest.mark.parametrize(
    "changes", [{"batch_size": 0}, {"num_workers": -1}, {"seed": -1}, {"seed": 2**32}]
)
def test_values_that_cannot_be_are_refused_at_once(data, changes):
    """Without it, they would fail later, in torch or numpy."""
    (name,) = changes
    with pytest.raises(UserError, match=f"{name} {changes[name]}"):
        data(**changes)


def test_a_missing_directory_says_what_to_type(tmp_path):
    """Without it, the first mistake of a newcomer would be a traceback."""
    with pytest.raises(UserError, match="make it with: looped prepare --source stdlib --out"):
        TokenDataModule(str(tmp_path / "none"), batch_size=8).setup("fit")


def test_changed_data_is_refused(prepared, tmp_path):
    """Without it, a run would train on tokens that its fingerprint does not name."""
    copy = shutil.copytree(prepared, tmp_path / "data")
    chunk = copy / "train" / "chunk-0-0.bin"
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(UserError, match="tokens of train were changed"):
        TokenDataModule(str(copy), batch_size=8).setup("fit")


def test_a_moved_directory_resumes(data, prepared, tmp_path):
    """Without it, a run could only be resumed where it was started (litdata compares paths)."""
    straight = fit(data(), 12)
    head = fit(data(), 5, save=tmp_path / "a.ckpt")
    moved = shutil.copytree(prepared, tmp_path / "moved")
    tail = fit(TokenDataModule(str(moved), batch_size=8), 12, resume=tmp_path / "a.ckpt")
    assert head + tail == straight


def test_the_constructor_takes_plain_types_only():
    """Without it, jsonargparse or weights_only loading would fail on it."""
    parameters = inspect.signature(TokenDataModule).parameters.values()
    assert {str(p.annotation) for p in parameters} <= {
        "<class 'str'>",
        "<class 'int'>",
        "int | None",
    }
