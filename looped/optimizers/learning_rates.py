"""Learning rates of the paper's recipe and how they transfer (DESIGN.md section 4).

    block matrices and W   MuonH   matrix_lr x (tokens / D_ref)^-0.32 x (B / 2^18)^0.558
    embed, head            AdamW   embed_lr, head_lr, each x (d / 640)^-0.5 x (B / 2^18)^0.558
    gains, streams         AdamW   norm_lr, stream_lr, each x (d / 640)^-0.5

B is tokens per step, d the width. Arithmetic only, no torch.
"""

import math
from dataclasses import dataclass

from looped.architecture import Architecture
from looped.errors import UserError
from looped.training_plan import TrainingPlan

REFERENCE_WIDTH = 640
REFERENCE_TOKENS_PER_STEP = 2**18
TOKENS_PER_PARAMETER = 10  # D_ref per effective non-embedding parameter of the reference model

DATA_EXPONENT = -0.32
BATCH_EXPONENT = 0.558
WIDTH_EXPONENT = -0.5


@dataclass(frozen=True, kw_only=True)
class LearningRates:
    """One learning rate per kind of parameter.

    Args:
        optimizer: muonh for block matrices and W (adamw for the rest), adamw for everything, or
            the class path of another optimizer.
        matrix_lr: of block matrices and W.
        embed_lr: of the embedding.
        head_lr: of the head.
        norm_lr: of the norm gains.
        stream_lr: of the stream parameters.
    """

    optimizer: str = "muonh"
    matrix_lr: float = 0.014
    embed_lr: float = 0.3
    head_lr: float = 0.004
    norm_lr: float = 0.005
    stream_lr: float = 0.01

    def __post_init__(self) -> None:
        for name in ("matrix_lr", "embed_lr", "head_lr", "norm_lr", "stream_lr"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(
                    f"{name} {getattr(self, name)} is not a learning rate: choose 0 or more"
                )

    def transferred(self, architecture: Architecture, plan: TrainingPlan) -> "LearningRates":
        """From the reference point, where the rates are quoted, to one run.

        Without MuonH the matrices follow the rule of embedding and head; the paper has none.
        """
        width = (architecture.width / REFERENCE_WIDTH) ** WIDTH_EXPONENT
        batch = (plan.tokens_per_step / REFERENCE_TOKENS_PER_STEP) ** BATCH_EXPONENT
        data = (plan.tokens / reference_tokens(architecture)) ** DATA_EXPONENT
        return LearningRates(
            optimizer=self.optimizer,
            matrix_lr=self.matrix_lr * batch * (data if self.optimizer == "muonh" else width),
            embed_lr=self.embed_lr * width * batch,
            head_lr=self.head_lr * width * batch,
            norm_lr=self.norm_lr * width,
            stream_lr=self.stream_lr * width,
        )


def reference_tokens(architecture: Architecture) -> int:
    """D_ref: ten tokens per effective parameter of the reference model of the same kind.

    That model has width 640: 2-4-2 layers with r = 4 and the linear injection for looped models,
    0-20-0 layers with r = 1 for plain ones.
    """
    looped = architecture.recurrences > 1
    reference = Architecture(
        width=REFERENCE_WIDTH,
        num_heads=5,
        prelude_layers=2 if looped else 0,
        recurrent_layers=4 if looped else 20,
        coda_layers=2 if looped else 0,
        recurrences=4 if looped else 1,
    )
    groups = reference.parameter_groups()
    once = groups.prelude + groups.coda + groups.norms
    looping = reference.recurrences * (groups.recurrent + groups.injection)
    return TOKENS_PER_PARAMETER * (once + looping)
