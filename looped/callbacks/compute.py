"""The ledger of compute: tokens and FLOPs as executed, batch by batch, and the time they took."""

import time
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from typing_extensions import override

from looped.architecture import CONVENTIONS, Convention
from looped.errors import UserError
from looped.measured_model import check_groups, measured_model
from looped.modules.looped_lm import LoopedLM
from looped.modules.measure import measured_flops_per_token
from looped.optimizers.muonh import MuonH


class Compute(Callback):
    """Counts training tokens and FLOPs of the whole job and logs the throughput.

    The counters are Python integers (a float32 sum stops at 2^24), advance with every executed
    batch whatever its size, and continue after a resume. Every process has the same batch size,
    so the job's count is that of one process times their number.

    Args:
        convention: how FLOPs are counted: `paper`, or `causal` with attention halved.

    Attributes:
        tokens: training tokens (targets) consumed so far.
        train_flops: training FLOPs so far, in the convention.
        wall_s: seconds between the start of training and now, over all starts.
        flops_per_token: F in the convention.
        measured_flops_per_token: what torch's counter sees of the same forward and backward; null
            for models that are not `LoopedLM`.
        optimizer_flops: matrix work of one optimizer step.
    """

    def __init__(self, convention: Convention = "paper") -> None:
        if convention not in CONVENTIONS:
            raise UserError(
                f"convention {convention!r} is unknown: choose {' or '.join(CONVENTIONS)}"
            )
        self.convention = convention
        self.tokens = 0
        self.train_flops = 0
        self.flops_per_token = 0
        self.measured_flops_per_token: int | None = None
        self.optimizer_flops = 0
        self._earlier_wall_s = 0.0
        self._started: float | None = None
        self._window = (0.0, 0)  # clock and tokens when the throughput was last logged

    @property
    def wall_s(self) -> float:
        """Seconds spent training, over all starts."""
        running = 0.0 if self._started is None else time.monotonic() - self._started
        return self._earlier_wall_s + running

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage == "fit":
            check_groups(pl_module)
            self.flops_per_token = measured_model(pl_module).flops_per_token(self.convention)
            # only of ours it is known how to build the network where nothing is computed
            if isinstance(pl_module, LoopedLM):
                self.measured_flops_per_token = measured_flops_per_token(pl_module.architecture)

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.optimizer_flops = sum(
            optimizer.matrix_flops()
            for optimizer in trainer.optimizers
            if isinstance(optimizer, MuonH)
        )
        self._started = time.monotonic()
        self._window = (self._started, self.tokens)

    @override
    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        tokens = batch[1].numel() * trainer.world_size
        self.tokens += tokens
        self.train_flops += tokens * self.flops_per_token
        plan = measured_model(pl_module).plan
        every = trainer.log_every_n_steps  # type: ignore[attr-defined]  # a connector sets it; 0 = never
        ends = plan is not None and trainer.global_step >= plan.steps
        if ends or (every and trainer.global_step % every == 0):
            self._log(pl_module)

    def _log(self, pl_module: LightningModule) -> None:
        now = time.monotonic()
        seconds, tokens = now - self._window[0], self.tokens - self._window[1]
        self._window = (now, self.tokens)
        pl_module.log_dict({"tokens": float(self.tokens), "train_flops": float(self.train_flops)})
        if seconds > 0:
            pl_module.log("tokens_per_s", tokens / seconds, prog_bar=True)

    @override
    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._stop_clock()

    @override
    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        self._stop_clock()

    def _stop_clock(self) -> None:
        self._earlier_wall_s = self.wall_s
        self._started = None

    @override
    def state_dict(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "train_flops": self.train_flops, "wall_s": self.wall_s}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.tokens = state_dict["tokens"]
        self.train_flops = state_dict["train_flops"]
        self._earlier_wall_s = state_dict["wall_s"]
