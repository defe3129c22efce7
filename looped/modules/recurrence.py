"""How the recurrent block is fed and what becomes of its output: injections and streams.

Every pass t of the loop is   u = read(state, e, t);  s = norm_recur(blocks(u));
state = write(state, s, t)   with e the prelude's output. The four ways differ in these alone:

    linear     state = e at first;   u = W [e ; s];                 state = s
    additive   state = 0 at first;   u = s + e;                     state = s
    none       state = e at first;   u = s;                         state = s
    streams    h_1..h_K = e;         u = sum_i alpha[t,i] h_i;      h_i = sum_j M[t,i,j] h_j
                                                                         + beta[t,i] s

A new injection is one class here, one branch in `make_recurrence`, and its count in
architecture.py. Shapes: B batch, T tokens, D width, K streams, R recurrences in training.
"""

import torch
from torch import Tensor, nn

from looped.architecture import Architecture


class Recurrence(nn.Module):
    """`none`: the prelude's output is the first state and is not seen again.

    The others change what they must of it.

    Attributes:
        rereads_prelude: whether passes after the first see the prelude's output again.
    """

    rereads_prelude = False

    def start(self, e: Tensor) -> Tensor:
        """State before the first pass; e is (B, T, D), the state too unless said."""
        return e

    def read(self, state: Tensor, e: Tensor, t: int) -> Tensor:
        """Input of pass t: (B, T, D)."""
        return state

    def write(self, state: Tensor, s: Tensor, t: int) -> Tensor:
        """State after pass t, whose output is s (B, T, D)."""
        return s

    def finish(self, state: Tensor) -> Tensor:
        """What the coda gets: (B, T, D)."""
        return state


class AdditiveInjection(Recurrence):
    """`additive`: the prelude's output is added to the state, which begins at zero."""

    rereads_prelude = True

    def start(self, e: Tensor) -> Tensor:
        """Zeros."""
        return torch.zeros_like(e)

    def read(self, state: Tensor, e: Tensor, t: int) -> Tensor:
        """Sum s + e."""
        return state + e


class LinearInjection(Recurrence):
    """`linear`: a matrix W (D x 2D) mixes the prelude's output and the state."""

    rereads_prelude = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, 2 * width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """W = [I | 0]: at first each pass reads the prelude's output alone."""
        with torch.no_grad():
            self.weight.zero_()
            self.weight.fill_diagonal_(1.0)

    def read(self, state: Tensor, e: Tensor, t: int) -> Tensor:
        """W [e ; s]."""
        return nn.functional.linear(torch.cat((e, state), dim=-1), self.weight)


class Streams(Recurrence):
    """K hyperconnection streams with parameters of their own for every pass.

    Passes beyond those trained reuse the parameters of pass t mod R. Rows of passes that run
    without gradient get a gradient of exactly zero, so they stay at their initial value.
    """

    def __init__(self, streams: int, recurrences: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.empty(recurrences, streams))
        self.mixing = nn.Parameter(torch.empty(recurrences, streams, streams))
        self.beta = nn.Parameter(torch.empty(recurrences, streams))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Pass t reads stream t mod K; streams keep to themselves; each takes the output once."""
        recurrences, streams = self.alpha.shape
        with torch.no_grad():
            self.alpha.zero_()
            for t in range(recurrences):
                self.alpha[t, t % streams] = 1.0
            self.mixing.copy_(torch.eye(streams))
            self.beta.fill_(1.0)

    def start(self, e: Tensor) -> Tensor:
        """K copies of e: (K, B, T, D), a view."""
        return e.expand(self.alpha.shape[1], *e.shape)

    def read(self, state: Tensor, e: Tensor, t: int) -> Tensor:
        """sum_i alpha[t,i] h_i."""
        return torch.einsum("k,kbtd->btd", self.alpha[t % len(self.alpha)], state)

    def write(self, state: Tensor, s: Tensor, t: int) -> Tensor:
        """h_i = sum_j M[t,i,j] h_j + beta[t,i] s."""
        mixing = self.mixing[t % len(self.mixing)]
        beta = self.beta[t % len(self.beta)]
        mixed = torch.einsum("ij,jbtd->ibtd", mixing, state)
        return mixed + beta[:, None, None, None].to(s.dtype) * s

    def finish(self, state: Tensor) -> Tensor:
        """sum_i h_i."""
        return state.sum(0)


def make_recurrence(architecture: Architecture) -> Recurrence:
    """The injection or the streams that an architecture asks for."""
    if architecture.streams > 1:
        return Streams(architecture.streams, architecture.recurrences)
    if architecture.resolved_injection == "linear":
        return LinearInjection(architecture.width)
    if architecture.resolved_injection == "additive":
        return AdditiveInjection()
    return Recurrence()
