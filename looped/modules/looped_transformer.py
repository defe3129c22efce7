"""The looped transformer (DESIGN.md section 2; arXiv 2604.21106).

    x = norm_embed(embed(tokens));  x = prelude(x);  e = x
    r passes of the recurrent block, fed by the injection or the streams (recurrence.py)
    x = coda(x);  logits = c tanh(head(norm_final(x)) / c)

Decisions:
- The first r - k passes run without gradient (k = truncation_depth): no activations, no backward.
- Head untied; logits and loss in float32 or better, whatever the precision of the matrix products.
- Training takes the loss without the logits (head_loss.py), which are larger than all else.
- The vocabulary is padded inside; logits of the padding never leave.
- A forward pass may take another number of recurrences than the one trained with.
- With shared = false every pass has blocks of its own: the control in which nothing is shared.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from looped.architecture import Architecture
from looped.errors import UserError
from looped.modules.block import NORM_EPS, Block, Rotation, rotation
from looped.modules.head_loss import mean_nats, nats_of, softcapped
from looped.modules.recurrence import LinearInjection, Streams, make_recurrence


class LoopedTransformer(nn.Module):
    """A transformer whose middle block runs `recurrences` times.

    Args:
        activation_checkpointing: keep of each recurrence its input alone and compute it again in
            the backward pass, which takes less memory and up to a third more time.
        arguments: those of `looped.architecture.Architecture`, by keyword.

    Raises:
        UserError: an impossible value or combination.
    """

    def __init__(self, *, activation_checkpointing: bool = False, **arguments: Any) -> None:
        super().__init__()
        self.activation_checkpointing = activation_checkpointing
        a = self.architecture = Architecture(**arguments)
        self.embed = nn.Embedding(a.padded_vocab_size, a.width)
        self.prelude = nn.ModuleList(Block(a) for _ in range(a.prelude_layers))
        self.recurrent = nn.ModuleList(
            Block(a) for _ in range(a.recurrent_blocks * a.recurrent_layers)
        )
        self.coda = nn.ModuleList(Block(a) for _ in range(a.coda_layers))
        self.injection = make_recurrence(a)
        self.norm_embed = nn.RMSNorm(a.width, eps=NORM_EPS)
        self.norm_recur = nn.RMSNorm(a.width, eps=NORM_EPS)
        self.norm_final = nn.RMSNorm(a.width, eps=NORM_EPS)
        self.head = nn.Linear(a.width, a.padded_vocab_size, bias=False)
        self.reset_parameters()
        if not self.trains_prelude:
            for part in (self.embed, self.norm_embed, self.prelude):
                part.requires_grad_(False)
        if not a.shared:
            for t in range(a.recurrences - a.gradient_passes):
                for block in self._blocks_of_pass(t):
                    block.requires_grad_(False)

    @property
    def trains_prelude(self) -> bool:
        """Whether a gradient reaches embedding and prelude.

        It does not when the state is cut from the graph and no later pass reads the prelude's
        output again; those parameters are then frozen, for an unused one would stop DDP.
        """
        a = self.architecture
        return a.gradient_passes == a.recurrences or self.injection.rereads_prelude

    def reset_parameters(self) -> None:
        """Set the initial values of DESIGN.md section 2."""
        nn.init.normal_(self.embed.weight, std=1.0)
        nn.init.normal_(self.head.weight, std=0.001)
        for block in (*self.prelude, *self.recurrent, *self.coda):
            for matrix in block.children():
                if isinstance(matrix, nn.Linear):
                    bound = math.sqrt(3 / matrix.in_features)  # uniform of std 1 / sqrt(fan_in)
                    nn.init.uniform_(matrix.weight, -bound, bound)
        for module in self.modules():
            if isinstance(module, nn.RMSNorm | LinearInjection | Streams):
                module.reset_parameters()

    def compile_blocks(self, **options: Any) -> None:
        """Compile every block, in place, so that the names in a checkpoint do not change.

        The loop itself stays plain Python: compiled whole it would be compiled anew for every
        number of recurrences. Blocks of one shape share their graphs, one with and one without
        gradient.

        Args:
            options: of `torch.compile`.
        """
        for block in (*self.prelude, *self.recurrent, *self.coda):
            block.compile(**options)

    def forward(self, tokens: Tensor, *, recurrences: int | None = None) -> Tensor:
        """Logits of the next token.

        Args:
            tokens: (B, T) token ids, any T.
            recurrences: passes through the recurrent block; null = the number trained with.

        Returns:
            (B, T, V) in float32 (float64 for a float64 model), softcapped, without padding.

        Raises:
            UserError: recurrences below one.
        """
        a = self.architecture
        z = self.head(self._features(tokens, recurrences))[..., : a.vocab_size]
        return softcapped(z if z.dtype == torch.float64 else z.float(), a.logit_softcap)

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in training: that of `forward`'s logits, in much less memory.

        Args:
            tokens: (B, T) token ids, any T.
            targets: (B, T) token ids; -100 is ignored.

        Returns:
            Nats per target, a scalar in float32 (float64 for a float64 model).
        """
        a = self.architecture
        x = self._features(tokens, None)
        return mean_nats(
            x, self.head.weight, targets, vocab_size=a.vocab_size, softcap=a.logit_softcap
        )

    def nats(self, tokens: Tensor, targets: Tensor, *, recurrences: int | None = None) -> Tensor:
        """Cross-entropy of every target at evaluation, without gradient.

        Args:
            tokens: (B, T) token ids, any T.
            targets: (B, T) token ids; -100 is ignored.
            recurrences: passes through the recurrent block; null = the number trained with.

        Returns:
            (B, T), zero where ignored.

        Raises:
            UserError: recurrences below one.
        """
        a = self.architecture
        with torch.no_grad():
            x = self._features(tokens, recurrences)
            return nats_of(
                x, self.head.weight, targets, vocab_size=a.vocab_size, softcap=a.logit_softcap
            )

    def _features(self, tokens: Tensor, recurrences: int | None) -> Tensor:
        """What the head is applied to: (B, T, D)."""
        a = self.architecture
        x = self.norm_embed(self.embed(tokens))
        by = rotation(tokens.shape[-1], a.head_dim, x)
        for block in self.prelude:
            x = block(x, by)
        x = self._loop(x, by, a.recurrences if recurrences is None else recurrences)
        for block in self.coda:
            x = block(x, by)
        normed: Tensor = self.norm_final(x)
        return normed

    def _loop(self, e: Tensor, by: Rotation, recurrences: int) -> Tensor:
        if recurrences < 1:
            raise UserError(f"recurrences {recurrences} is below 1: choose 1 or more")
        depth = self.architecture.truncation_depth
        first_with_gradient = 0 if depth is None else recurrences - depth
        state = self.injection.start(e)
        for t in range(recurrences):
            with torch.set_grad_enabled(torch.is_grad_enabled() and t >= first_with_gradient):
                # the backward pass begins with the last recurrence: keeping it costs no memory
                keep = not self.activation_checkpointing or t == recurrences - 1
                if keep or not torch.is_grad_enabled():
                    state = self._pass(state, e, by, t)
                else:
                    state = checkpoint(
                        self._pass, state, e, by, t, use_reentrant=False, preserve_rng_state=False
                    )
        return self.injection.finish(state)

    def _pass(self, state: Tensor, e: Tensor, by: Rotation, t: int) -> Tensor:
        s = self.injection.read(state, e, t)
        for block in self._blocks_of_pass(t):
            s = block(s, by)
        return self.injection.write(state, self.norm_recur(s), t)

    def _blocks_of_pass(self, t: int) -> list[nn.Module]:
        """The blocks that pass t runs; passes beyond those trained take those of t mod r."""
        a = self.architecture
        first = t % a.recurrent_blocks * a.recurrent_layers
        return list(self.recurrent)[first : first + a.recurrent_layers]
