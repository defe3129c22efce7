"""Validation rows of which the processes have different numbers, with different holes."""

import torch
import torch.nn.functional as F
from lightning.pytorch import LightningDataModule, Trainer, seed_everything
from torch.utils.data import DataLoader, TensorDataset

from looped.callbacks.compute import Compute
from looped.callbacks.validation_loss import ValidationLoss
from looped.modules.looped_lm import LoopedLM
from tests.several_processes.training import MODEL, SEQ_LEN

SHARES = (range(5), range(5, 8))  # rows of each process; in batches of 3: 3 + 2 and 3 + 0


class RaggedRows(LightningDataModule):
    """Eight rows; the later ones have more targets that are ignored."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(4)
        tokens = torch.randint(MODEL["vocab_size"], (8, SEQ_LEN + 1), generator=generator)
        self.inputs, self.targets = tokens[:, :-1], tokens[:, 1:].clone()
        for row in range(8):
            self.targets[row, : 2 * row] = -100

    def val_dataloader(self) -> DataLoader:
        assert self.trainer is not None
        mine = list(SHARES[self.trainer.global_rank])
        return DataLoader(TensorDataset(self.inputs[mine], self.targets[mine]), batch_size=3)


def make_model() -> LoopedLM:
    seed_everything(1, verbose=False)
    model = LoopedLM(**MODEL)
    torch.nn.init.normal_(model.network.head.weight)  # losses that differ from row to row
    return model


def expected_loss() -> float:
    """The token-weighted mean, in one piece."""
    data = RaggedRows()
    with torch.no_grad():
        logits = make_model()(data.inputs).double().flatten(0, 1)
    return F.cross_entropy(logits, data.targets.flatten()).item()


def measured_loss(strategy: str) -> float:
    """What two processes log; collective."""
    trainer = Trainer(
        accelerator="cpu",
        devices=2,
        strategy=strategy,
        logger=False,
        enable_progress_bar=False,
        use_distributed_sampler=False,
        callbacks=[ValidationLoss(), Compute()],
    )
    (logged,) = trainer.validate(make_model(), RaggedRows(), verbose=False)
    return logged["val_loss"]
