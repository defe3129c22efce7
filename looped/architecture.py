"""What a looped transformer is: its constructor arguments, its parameters, its FLOPs.

Arithmetic only, no torch: `looped count`, the planner and the fitter read the same numbers as the
model. The formulas stand beside the mathematics of arXiv 2604.21106 (appendix on FLOPs):

    F = 6 (P_prelude + P_coda + P_head) + (6 k + 2 (r - k)) (P_recurrent + P_injection)
      + d T [12 (prelude + coda layers) + (12 k + 4 (r - k)) recurrent_layers]

A parameter that meets a token in a matrix product costs 2 FLOPs forward and 4 backward; the r - k
passes without gradient cost the forward 2 alone. Attention scores and their weighted sum cost
2 d T each forward, twice that backward.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from looped.errors import UserError

Injection = Literal["linear", "additive", "none"]
Convention = Literal["paper", "causal"]

CONVENTIONS: tuple[str, ...] = get_args(Convention)

# The vocabulary is padded so that the head's matrix product fills the tiles of a GPU.
VOCAB_MULTIPLE = 64


@dataclass(frozen=True, kw_only=True)
class ParameterGroups:
    """Number of parameters by group; every parameter is in exactly one."""

    embedding: int = 0
    head: int = 0
    prelude: int = 0
    recurrent: int = 0
    coda: int = 0
    injection: int = 0
    norms: int = 0

    @property
    def total(self) -> int:
        """All parameters, with embedding and head."""
        return sum(asdict(self).values())

    @property
    def n_once(self) -> int:
        """N_once: non-embedding parameters that run once per token, with the injection."""
        return self.prelude + self.coda + self.norms + self.injection

    @property
    def n_rec(self) -> int:
        """N_rec: parameters of the recurrent block, counted once; all copies when not shared."""
        return self.recurrent

    def as_record(self) -> dict[str, int]:
        """The `params` section of the record: the groups, `total`, `n_once`, `n_rec`."""
        return asdict(self) | {"total": self.total, "n_once": self.n_once, "n_rec": self.n_rec}


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The constructor arguments of a looped transformer, validated once.

    Args:
        width: d, the model dimension.
        num_heads: H, query heads; width must be a multiple of it and width / num_heads even.
        num_kv_heads: key and value heads, a divisor of num_heads; null = num_heads.
        prelude_layers: unique blocks before the loop.
        recurrent_layers: blocks of the shared recurrent block.
        coda_layers: unique blocks after the loop.
        recurrences: r, how often the recurrent block runs.
        truncation_depth: k, gradients flow through the last k recurrences only; null = all.
        streams: K, hyperconnection streams; 1 = none, the injection is used instead.
        shared: one recurrent block for all passes; false = every pass has a block of its own, a
            control with the same wiring and compute in which nothing is shared.
        injection: how the prelude's output enters each pass: linear, additive or none; null =
            linear when recurrences > 1 and streams = 1, else none.
        vocab_size: V, tokens of the vocabulary; padded up to a multiple of 64 inside.
        seq_len: T, tokens per training row.
        logit_softcap: c, logits are c tanh(z / c); null = no cap.

    Raises:
        UserError: an impossible value or combination, named in the message.
    """

    width: int
    num_heads: int
    num_kv_heads: int | None = None
    prelude_layers: int = 2
    recurrent_layers: int = 4
    coda_layers: int = 2
    recurrences: int = 4
    truncation_depth: int | None = None
    streams: int = 1
    shared: bool = True
    injection: Injection | None = None
    vocab_size: int = 32_001
    seq_len: int = 2_048
    logit_softcap: float | None = 15.0

    def __post_init__(self) -> None:
        for name in ("width", "num_heads", "recurrences", "streams", "vocab_size", "seq_len"):
            _require_at_least(1, name, getattr(self, name))
        for name in ("prelude_layers", "coda_layers"):
            _require_at_least(0, name, getattr(self, name))
        _require_at_least(1, "recurrent_layers", self.recurrent_layers)
        if self.width % self.num_heads:
            raise UserError(
                f"width {self.width} is not divisible by num_heads {self.num_heads}: "
                f"choose a width that is a multiple of {self.num_heads}"
            )
        if self.head_dim % 2:
            raise UserError(
                f"width / num_heads = {self.width} / {self.num_heads} = {self.head_dim} is odd: "
                "rotary positions need an even head dimension"
            )
        if self.num_kv_heads is not None:
            _require_at_least(1, "num_kv_heads", self.num_kv_heads)
            if self.num_heads % self.num_kv_heads:
                raise UserError(
                    f"num_heads {self.num_heads} is not divisible by num_kv_heads "
                    f"{self.num_kv_heads}: choose a divisor of {self.num_heads}"
                )
        if self.truncation_depth is not None:
            _require_at_least(1, "truncation_depth", self.truncation_depth)
            if self.truncation_depth > self.recurrences:
                raise UserError(
                    f"truncation_depth {self.truncation_depth} is above recurrences "
                    f"{self.recurrences}: choose 1 to {self.recurrences}, or null for all"
                )
        if self.injection is not None and self.injection not in get_args(Injection):
            raise UserError(
                f"injection {self.injection!r} is unknown: choose "
                f"{', '.join(get_args(Injection))} or null"
            )
        if self.streams > 1 and self.injection is not None:
            raise UserError(
                f"streams {self.streams} together with injection {self.injection}: streams take "
                "the place of the injection, so leave injection null or set streams to 1"
            )
        if self.logit_softcap is not None and not 0 < self.logit_softcap < math.inf:
            raise UserError(
                f"logit_softcap {self.logit_softcap} must be positive, or null for none"
            )

    # -- resolved arguments ----------------------------------------------------------------------

    @property
    def head_dim(self) -> int:
        """Dimension of one attention head."""
        return self.width // self.num_heads

    @property
    def kv_heads(self) -> int:
        """Key and value heads, with the default resolved."""
        return self.num_heads if self.num_kv_heads is None else self.num_kv_heads

    @property
    def padded_vocab_size(self) -> int:
        """Rows of the embedding and of the head."""
        return -(-self.vocab_size // VOCAB_MULTIPLE) * VOCAB_MULTIPLE

    @property
    def resolved_injection(self) -> Injection:
        """The injection in force, with the default resolved; `none` when streams > 1."""
        if self.injection is not None:
            return self.injection
        return "linear" if self.recurrences > 1 and self.streams == 1 else "none"

    @property
    def gradient_passes(self) -> int:
        """k: how many of the recurrences carry a gradient."""
        return self.recurrences if self.truncation_depth is None else self.truncation_depth

    @property
    def recurrent_blocks(self) -> int:
        """Sets of recurrent_layers blocks that exist: one, or one for every pass."""
        return 1 if self.shared else self.recurrences

    @property
    def effective_depth(self) -> int:
        """Blocks a token passes through: prelude + r x recurrent + coda."""
        return self.prelude_layers + self.recurrences * self.recurrent_layers + self.coda_layers

    def as_record(self) -> dict[str, Any]:
        """The `model` section of the record: every constructor argument, plain JSON values."""
        return asdict(self)

    # -- counting --------------------------------------------------------------------------------

    def parameter_groups(self) -> ParameterGroups:
        """Parameters by group."""
        d, kv_width = self.width, self.kv_heads * self.head_dim
        block = 2 * d * d + 2 * d * kv_width  # q, o; k, v
        block += 2 * d * 4 * d  # up, down
        block += 2 * d  # gains of norm_attn and norm_mlp
        if self.streams > 1:  # per pass: alpha (K), M (K x K), beta (K)
            injection = self.recurrences * (self.streams**2 + 2 * self.streams)
        elif self.resolved_injection == "linear":  # W: d x 2d
            injection = 2 * d * d
        else:
            injection = 0
        return ParameterGroups(
            embedding=self.padded_vocab_size * d,
            head=self.padded_vocab_size * d,
            prelude=self.prelude_layers * block,
            recurrent=self.recurrent_blocks * self.recurrent_layers * block,
            coda=self.coda_layers * block,
            injection=injection,
            norms=3 * d,  # norm_embed, norm_recur, norm_final
        )

    def flops_per_token(self, convention: Convention = "paper") -> int:
        """Training FLOPs per token (forward and backward), exact.

        Args:
            convention: `paper` counts attention over the whole row; `causal` halves it.

        Returns:
            F of the module docstring. Embedding look-ups, norms, softmax, the norm gains outside
            the blocks and the optimizer are not counted.
        """
        d, r, k = self.width, self.recurrences, self.gradient_passes
        groups = self.parameter_groups()
        # Stream parameters act on whole d-vectors: each is worth d multiplications per token.
        injection = (
            (self.streams**2 + 2 * self.streams) * d if self.streams > 1 else groups.injection
        )
        matrices = 6 * (groups.prelude + groups.coda + groups.head)
        recurrent = groups.recurrent // self.recurrent_blocks  # what one pass meets
        matrices += (6 * k + 2 * (r - k)) * (recurrent + injection)
        attention = d * self.seq_len
        attention *= (
            12 * (self.prelude_layers + self.coda_layers)
            + (12 * k + 4 * (r - k)) * self.recurrent_layers
        )
        if convention == "causal":
            attention //= 2  # exact: every term above is a multiple of four
        return matrices + attention


def _require_at_least(least: int, name: str, value: int) -> None:
    if value < least:
        raise UserError(f"{name} {value} is below {least}: choose {least} or more")
