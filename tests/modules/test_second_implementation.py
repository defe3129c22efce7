"""The network against a second one written here from DESIGN.md alone: loops over heads and streams.

tests/data/golden.json fixes seven cases; this covers what lies between them.
"""

import math

import pytest
import torch
import torch.nn.functional as F

from looped.modules.looped_transformer import LoopedTransformer

SIZES = {
    "width": 24,
    "num_heads": 4,
    "prelude_layers": 1,
    "recurrent_layers": 2,
    "coda_layers": 1,
    "vocab_size": 70,
    "seq_len": 9,
}
CASES = [
    {"recurrences": 3, "num_kv_heads": 2},
    {"recurrences": 8, "num_kv_heads": 1, "logit_softcap": 30.0},
    {"recurrences": 5, "truncation_depth": 3, "injection": "additive"},
    {"recurrences": 3, "streams": 3, "logit_softcap": None},
    {"recurrences": 8, "streams": 4, "num_kv_heads": 2},
    {"recurrences": 5, "streams": 3, "truncation_depth": 2},
    {"recurrences": 4, "truncation_depth": 1, "injection": "none"},
    {"recurrences": 1, "injection": "linear", "prelude_layers": 0},
    {"recurrences": 3, "shared": False, "truncation_depth": 2},
    {"recurrences": 3, "shared": False, "streams": 2},
    {"recurrences": 2, "width": 40, "num_heads": 2, "coda_layers": 3},
]


def norm(x, gain=None):
    y = x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return y if gain is None else y * gain


def rope(x):
    """(T, C): position t turns the pair (x1_i, x2_i) by t 10000^(-2i/C), as one complex number."""
    length, size = x.shape
    half = size // 2
    angles = [[-t * 10_000 ** (-2 * i / size) for i in range(half)] for t in range(length)]
    turn = torch.exp(1j * torch.tensor(angles, dtype=torch.float64))
    turned = torch.complex(x[:, :half], x[:, half:]) * turn
    return torch.cat((turned.real, turned.imag), -1)


def block(x, p, heads, kv_heads):
    """One row (T, D) through one block; p maps names to tensors."""
    length, width = x.shape
    size = width // heads
    a = norm(x, p["norm_attn.weight"])
    q, k, v = (a @ p[f"{n}.weight"].T for n in "qkv")
    mixed = []
    for h in range(heads):
        g = h // (heads // kv_heads)
        qh = norm(rope(q[:, h * size : (h + 1) * size]))
        kh = norm(rope(k[:, g * size : (g + 1) * size]))
        scores = qh @ kh.T / math.sqrt(size)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed.append(
            scores.masked_fill(later, -math.inf).softmax(-1) @ v[:, g * size : (g + 1) * size]
        )
    x = x + torch.cat(mixed, -1) @ p["o.weight"].T
    inner = torch.relu(norm(x, p["norm_mlp.weight"]) @ p["up.weight"].T) ** 2
    return x + inner @ p["down.weight"].T


def forward(a, parameters, row):
    """Logits (T, V) of one row of tokens (T,)."""
    layers = {}
    for name, value in parameters.items():
        parts = name.split(".")
        if parts[0] in ("prelude", "recurrent", "coda"):
            layers.setdefault((parts[0], int(parts[1])), {})[".".join(parts[2:])] = value

    def stack(part, count, x, first=0):
        for i in range(first, first + count):
            x = block(x, layers[part, i], a.num_heads, a.num_kv_heads or a.num_heads)
        return x

    x = norm(parameters["embed.weight"][row], parameters["norm_embed.weight"])
    e = stack("prelude", a.prelude_layers, x)
    k = a.truncation_depth or a.recurrences
    injection = a.injection or ("linear" if a.recurrences > 1 and a.streams == 1 else "none")
    h = [e] * a.streams
    s = torch.zeros_like(e) if injection == "additive" else e
    for t in range(a.recurrences):
        if a.streams > 1:
            u = sum(parameters["injection.alpha"][t, i] * h[i] for i in range(a.streams))
        elif injection == "linear":
            u = torch.cat((e, s), -1) @ parameters["injection.weight"].T
        else:
            u = s + e if injection == "additive" else s
        first = 0 if a.shared else t * a.recurrent_layers
        s = norm(stack("recurrent", a.recurrent_layers, u, first), parameters["norm_recur.weight"])
        if a.streams > 1:
            mixing, beta = parameters["injection.mixing"][t], parameters["injection.beta"][t]
            h = [
                sum(mixing[i, j] * h[j] for j in range(a.streams)) + beta[i] * s
                for i in range(a.streams)
            ]
        if t < a.recurrences - k:
            h, s = [stream.detach() for stream in h], s.detach()
    x = stack("coda", a.coda_layers, sum(h) if a.streams > 1 else s)
    z = norm(x, parameters["norm_final.weight"]) @ parameters["head.weight"].T
    z = z[:, : a.vocab_size]
    return z if a.logit_softcap is None else a.logit_softcap * torch.tanh(z / a.logit_softcap)


@pytest.mark.parametrize("arguments", CASES, ids=str)
def test_logits_and_gradients_agree(arguments):
    """Heads grouped wrongly, streams mixed transposed or a gradient cut elsewhere shows here."""
    torch.manual_seed(2)
    model = LoopedTransformer(**(SIZES | arguments)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    rows = torch.randint(70, (2, 10))
    logits = model(rows[:, :-1])
    F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).backward()

    copies = {n: p.detach().clone().requires_grad_() for n, p in model.named_parameters()}
    expected = torch.stack([forward(model.architecture, copies, row[:-1]) for row in rows])
    torch.testing.assert_close(logits, expected, rtol=1e-9, atol=1e-11)
    F.cross_entropy(expected.flatten(0, 1), rows[:, 1:].flatten()).backward()
    for name, parameter in model.named_parameters():
        ours, theirs = parameter.grad, copies[name].grad
        if theirs is None:  # nothing reaches it: frozen, so that DDP does not wait for it
            assert not parameter.requires_grad, name
        else:
            torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-12, msg=name)
