"""MuonH and AdamW in one optimizer, so that one `step` is one optimizer step.

MuonH (HyperP, arXiv 2603.28743) keeps every matrix on the sphere of its initial Frobenius norm:

    m  <- 0.95 m + 0.05 g;          g' = 0.05 g + 0.95 m
    u  =  polar(g') |W_0|_F / |polar(g')|_F
    W  <- W - lr u;                 W <- W |W_0|_F / |W|_F

polar(X) replaces the singular values of X by ones, approximately: five Polar Express iterations
(arXiv 2505.16932), each the odd polynomial a X + b X X^T X + c X X^T X X^T X that comes closest.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from looped.optimizers.distribution import (
    divide_among_processes,
    process_count,
    sharded_like,
    whole,
)

MOMENTUM = 0.95

Coefficients: TypeAlias = tuple[float, float, float]

# Coefficients (a, b, c) of the five iterations for singular values in [0, 1 / 1.02], as computed
# by the authors' method with a safety factor of 0.02; they are in use in nanochat and
# modded-nanogpt.
POLAR_EXPRESS = (
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
    (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
    (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
)


# On a CPU so much of a stack goes through its whole update at a time: with what is made of it, it
# stays in a core's cache.
CACHE_BYTES = 2**19


def orthogonalize(matrices: Tensor) -> Tensor:
    """Polar factors of a stack of matrices, approximately.

    Args:
        matrices: (S, rows, columns) with rows <= columns.

    Returns:
        The same shape; singular values near 1 where those of the input were not near 0, and
        zero for a zero matrix.
    """
    x: Tensor = matrices / (1.02 * torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-6)
    for coefficients in _parts(rows=x.shape[-2], columns=x.shape[-1]):
        x = _polynomial(x @ x.mT, coefficients) @ x
    return x


def _parts(*, rows: int, columns: int) -> list[tuple[Coefficients, ...]]:
    """The iterations in parts of which each is one product with X.

    Within a part G = X X^T of the next iteration is made of G alone, which saves products with
    wide matrices and costs one for square ones. All five in one part would leave rounding errors
    of 1e-3 where singular values differ by 1e4 and more; 3 + 2 leave those of single iterations.
    """
    if 2 * columns > 3 * rows:
        return [POLAR_EXPRESS[:3], POLAR_EXPRESS[3:]]
    return [(coefficients,) for coefficients in POLAR_EXPRESS]


def _polynomial(gram: Tensor, coefficients: Sequence[Coefficients]) -> Tensor:
    """The product of P(G) = a I + b G + c G^2 over some iterations; each turns G into P G P."""
    factor = product = _factor(gram, coefficients[0])
    for following in coefficients[1:]:
        gram = factor @ gram @ factor
        factor = _factor(gram, following)
        product = factor @ product
    return product


def _factor(gram: Tensor, coefficients: Coefficients) -> Tensor:
    a, b, c = coefficients
    polynomial = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
    polynomial.diagonal(dim1=-2, dim2=-1).add_(a)
    return polynomial


class MuonH(torch.optim.Optimizer):
    """MuonH for matrices, AdamW for the rest.

    Args:
        groups: parameter groups, each with `params`, `lr` and `rule`: `muonh` (two-dimensional
            parameters only) or `adamw`.
    """

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        defaults = {"lr": 0.0, "rule": "adamw", "betas": (0.8, 0.95), "eps": 1e-10}
        super().__init__(groups, defaults)
        for group in self.param_groups:
            if group["rule"] not in ("muonh", "adamw"):
                raise ValueError(f"unknown rule {group['rule']!r}")
            if group["rule"] == "muonh" and any(p.ndim != 2 for p in group["params"]):
                raise ValueError("muonh is a rule for matrices")

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One optimizer step; see `torch.optim.Optimizer.step`."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if not parameters:
                continue
            if group["rule"] == "adamw":
                self._adamw(parameters, group)
            else:
                by_shape = defaultdict(list)
                for p in parameters:
                    by_shape[min(p.shape), max(p.shape)].append(p)
                for same_shape in by_shape.values():
                    for some in _stacks(same_shape):
                        self._muonh(some, group["lr"])
        return loss

    def matrix_flops(self) -> int:
        """FLOPs of the matrix products in one `step`; element-wise work is not counted.

        A part of the iterations on an m x n matrix, m <= n, takes G = X X^T and its product with X
        (2 m^2 n each); an iteration takes the square of G, and all but the first of a part P G P
        and the product of two P (2 m^3 each).
        """
        total = 0
        for group in self.param_groups:
            if group["rule"] == "muonh":
                for m, n in (sorted(p.shape) for p in group["params"]):
                    for part in _parts(rows=m, columns=n):
                        total += 4 * m * m * n + 2 * m**3 * (4 * len(part) - 3)
        return total

    def _adamw(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        fused = _one_kernel(parameters)
        for p in parameters:
            if not self.state[p]:
                self.state[p] = {
                    "step": torch.zeros((), dtype=torch.float32),
                    "exp_avg": torch.zeros_like(p),
                    "exp_avg_sq": torch.zeros_like(p),
                }
            if fused:  # it counts on the device; a checkpoint brings the count in from the CPU
                self.state[p]["step"] = self.state[p]["step"].to(p.device)
        states = [self.state[p] for p in parameters]
        beta1, beta2 = group["betas"]
        adamw(
            parameters,
            [p.grad for p in parameters if p.grad is not None],
            [s["exp_avg"] for s in states],
            [s["exp_avg_sq"] for s in states],
            [],
            [s["step"] for s in states],
            foreach=not fused,
            fused=fused,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=0.0,
            eps=group["eps"],
            maximize=False,
        )

    def _muonh(self, matrices: list[Tensor], lr: float) -> None:
        """One update of matrices of one shape (or its transpose), orthogonalised as one stack.

        Several processes share out the orthogonalisation; of sharded matrices the momentum is
        sharded too, and all else is done on the whole.
        """
        for w in matrices:
            if not self.state[w]:
                self.state[w] = {
                    "momentum": torch.zeros_like(w),
                    "initial_norm": torch.linalg.matrix_norm(whole(w)),
                }
        gradients = [w.grad for w in matrices if w.grad is not None]
        momenta = [self.state[w]["momentum"] for w in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
        blended = torch._foreach_lerp(gradients, momenta, MOMENTUM)
        updates = divide_among_processes(
            orthogonalize, torch.stack([_wide(whole(g)) for g in blended])
        )
        norms = torch.stack([self.state[w]["initial_norm"] for w in matrices])[:, None, None]
        stack = torch.stack([_wide(whole(w)) for w in matrices])
        stack -= lr * _with_norm(updates, norms)
        stack = _with_norm(stack, norms)
        for w, new in zip(matrices, stack, strict=True):
            w.copy_(sharded_like(new if w.shape == new.shape else new.mT, w))


def _one_kernel(parameters: list[Tensor]) -> bool:
    """Whether AdamW's update is one kernel: on a GPU, where each of its parts would be launched."""
    return parameters[0].is_cuda


def _stacks(matrices: list[Tensor]) -> list[list[Tensor]]:
    """Cut matrices of one shape into stacks that are updated at a time.

    One stack, where launching or communicating costs more than memory: on a GPU, and where several
    processes share out the work.
    """
    if matrices[0].is_cuda or process_count() > 1:
        return [matrices]
    size = max(1, CACHE_BYTES // (matrices[0].numel() * matrices[0].element_size()))
    return [matrices[first : first + size] for first in range(0, len(matrices), size)]


def _wide(matrix: Tensor) -> Tensor:
    return matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT


def _with_norm(matrices: Tensor, norms: Tensor) -> Tensor:
    """Rescale each matrix to its Frobenius norm; a zero matrix stays zero."""
    present = torch.linalg.matrix_norm(matrices, keepdim=True)
    return matrices.mul(norms / torch.where(present > 0, present, 1.0))
