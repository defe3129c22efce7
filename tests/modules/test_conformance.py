"""The model against tests/data/golden.json: losses, logits and gradients of another implementation.

The weights are drawn from a counter (SplitMix64), as tests/data/README.md says; everything runs in
float64 and must agree to 1e-9.
"""

import json
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from looped.modules.looped_transformer import LoopedTransformer
from tests.conftest import DATA

GOLDEN = json.loads((DATA / "golden.json").read_text())
CASES = {name: case for name, case in GOLDEN.items() if isinstance(case, dict) and "loss" in case}


def uniform(number: int, count: int) -> np.ndarray:
    """SplitMix64 of the flat index, on [-0.5, 0.5)."""
    with np.errstate(over="ignore"):
        z = np.arange(count, dtype=np.uint64) + np.uint64(number * 2**32 + 1)
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) / 2.0**53 - 0.5


def our_name(golden_name: str) -> str:
    name = re.sub(r"^recur\.", "recurrent.", golden_name)
    name = re.sub(r"^inject$", "injection.weight", name)
    name = re.sub(r"^streams\.", "injection.", name)
    return name if name.startswith("injection.") else f"{name}.weight"


def model_of(case: dict) -> LoopedTransformer:
    streams = case.get("streams", 1)
    injection = {"hyperconnections": None, "passthrough": "none"}.get(
        case["injection"], case["injection"]
    )
    model = LoopedTransformer(
        width=case["width"],
        num_heads=case["n_head"],
        num_kv_heads=case["n_kv_head"],
        prelude_layers=case["n_prelude"],
        recurrent_layers=case["n_recur"],
        coda_layers=case["n_coda"],
        recurrences=case["recurrences"],
        truncation_depth=case["truncation"],
        streams=streams,
        injection=injection,
        vocab_size=case["vocab_size"],
        seq_len=case["seq_len"],
        logit_softcap=case["logit_softcap"],
    ).double()
    parameters = dict(model.named_parameters())
    assert [our_name(name) for name in case["shapes"]] == list(parameters)
    for number, (name, shape) in enumerate(case["shapes"].items()):
        u = torch.from_numpy(uniform(number, int(np.prod(shape)))).reshape(shape)
        parameter = parameters[our_name(name)]
        with torch.no_grad():
            if name.startswith("streams."):
                parameter.add_(0.2 * u)
            elif len(shape) == 1:
                parameter.copy_(1 + 0.2 * u)
            elif name == "embed":
                parameter.copy_(2 * u)
            else:
                parameter.copy_(2 * (3 / shape[1]) ** 0.5 * u)
    return model


def tokens_of(case: dict) -> torch.Tensor:
    shape = case["batch"], case["seq_len"] + 1
    u = uniform(999, shape[0] * shape[1])
    return torch.from_numpy(np.floor((u + 0.5) * case["vocab_size"]).astype(np.int64)).view(shape)


@pytest.mark.parametrize("name", CASES)
def test_loss_logits_and_gradients_agree(name):
    """A wrong rotation, scale, norm, injection, truncation or softcap shows here at 1e-9."""
    case = CASES[name]
    model = model_of(case)
    tokens = tokens_of(case)
    logits = model(tokens[:, :-1])
    assert logits.shape == (case["batch"], case["seq_len"], case["vocab_size"])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    assert loss.item() == pytest.approx(case["loss"], rel=1e-9)
    # logits are published with twelve decimals
    assert logits[0, 0, :5].tolist() == pytest.approx(case["logits_first"], rel=1e-9, abs=2e-12)
    assert logits[-1, -1, :5].tolist() == pytest.approx(case["logits_last"], rel=1e-9, abs=2e-12)
    norms = {n: p.grad.norm().item() for n, p in model.named_parameters()}
    expected = {our_name(n): value for n, value in case["grad_norm"].items()}
    assert norms == pytest.approx(expected, rel=1e-9)
    assert model.architecture.flops_per_token() == case["flops_per_token"]
