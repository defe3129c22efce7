"""Run by test_two_ranks.py: trains and validates on two CPU processes, writes what each saw.

Usage: python two_ranks.py DATA OUT
"""

import json
import sys
from pathlib import Path

import torch
from lightning import LightningModule, Trainer

from looped.datamodules.token_data import TokenDataModule


class Watcher(LightningModule):
    """Notes the rows it is given; a buffer makes every validation forward a collective."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.register_buffer("buffer", torch.zeros(1))
        self.seen = {"train": [], "val": []}

    def training_step(self, batch, batch_idx):
        self.seen["train"].append(batch[0].tolist())
        return self.weight.sum()

    def validation_step(self, batch, batch_idx):
        self.seen["val"].append(batch[0].tolist())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def main() -> None:
    data_dir, out = sys.argv[1:]
    model = Watcher()
    trainer = Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    data = TokenDataModule(data_dir, batch_size=3)
    trainer.fit(model, data)
    Path(out, f"{trainer.global_rank}.json").write_text(json.dumps(model.seen))


if __name__ == "__main__":
    main()
