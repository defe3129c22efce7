"""What the network must be besides conformant: plain at r = 1, truncated, re-loopable, lean."""

import csv
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.testing import CompileCounter

from looped.architecture import ParameterGroups
from looped.errors import UserError
from looped.modules.block import rotation
from looped.modules.looped_transformer import LoopedTransformer
from looped.modules.recurrence import Streams
from tests.conftest import DATA
from tests.test_architecture import architecture_of

SIZES = {"width": 16, "num_heads": 2, "recurrent_layers": 2, "vocab_size": 50, "seq_len": 12}


def make(**arguments) -> LoopedTransformer:
    """A small float64 model whose every parameter is random, gains and streams included."""
    torch.manual_seed(0)
    model = LoopedTransformer(**(SIZES | arguments)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def tokens(batch: int = 2, length: int = 12) -> torch.Tensor:
    return torch.randint(50, (batch, length), generator=torch.Generator().manual_seed(1))


def loss_of(model: LoopedTransformer, **kwargs) -> torch.Tensor:
    row = tokens(length=13)
    return F.cross_entropy(model(row[:, :-1], **kwargs).flatten(0, 1), row[:, 1:].flatten())


def gradients(model: LoopedTransformer) -> dict[str, torch.Tensor]:
    model.zero_grad()
    loss_of(model).backward()
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("row", list(csv.DictReader((DATA / "counts.csv").open())), ids=str)
def test_the_network_holds_exactly_the_counted_parameters(row):
    """The count of architecture.py is of this network: every group, on the meta device."""
    architecture = architecture_of(row)
    with torch.device("meta"):
        model = LoopedTransformer(**architecture.as_record())
    parts = {
        "embedding": [model.embed],
        "head": [model.head],
        "prelude": [model.prelude],
        "recurrent": [model.recurrent],
        "coda": [model.coda],
        "injection": [model.injection],
        "norms": [model.norm_embed, model.norm_recur, model.norm_final],
    }
    counted = {n: sum(p.numel() for m in ms for p in m.parameters()) for n, ms in parts.items()}
    assert ParameterGroups(**counted) == architecture.parameter_groups()
    assert sum(counted.values()) == sum(p.numel() for p in model.parameters())


def test_one_recurrence_is_the_plain_stack():
    """R = 1 is nothing but its blocks in a row (norm_recur between recurrent and coda)."""
    model = make(recurrences=1)
    x = model.norm_embed(model.embed(tokens()))
    by = rotation(12, 8, x)
    for block in (*model.prelude, *model.recurrent):
        x = block(x, by)
    x = model.norm_recur(x)
    for block in model.coda:
        x = block(x, by)
    z = F.linear(model.norm_final(x), model.head.weight)[..., :50]
    torch.testing.assert_close(model(tokens()), 15 * torch.tanh(z / 15), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("arguments", [{"injection": "linear"}, {"streams": 3}], ids=str)
def test_truncation_leaves_the_loss_and_cuts_the_gradient(arguments):
    """Same loss as without; gradients equal those of a loop whose state is detached by hand."""
    full, cut = (
        make(recurrences=4, **arguments),
        make(recurrences=4, truncation_depth=2, **arguments),
    )
    assert loss_of(full).item() == loss_of(cut).item()
    row = tokens(length=13)
    e = full.norm_embed(full.embed(row[:, :-1]))
    by = rotation(12, 8, e)
    for block in full.prelude:
        e = block(e, by)
    state = full.injection.start(e)
    for t in range(4):
        s = full.injection.read(state, e, t)
        for block in full.recurrent:
            s = block(s, by)
        state = full.injection.write(state, full.norm_recur(s), t)
        if t < 2:
            state = state.detach()
    x = full.injection.finish(state)
    for block in full.coda:
        x = block(x, by)
    z = full.head(full.norm_final(x))[..., :50]
    F.cross_entropy((15 * torch.tanh(z / 15)).flatten(0, 1), row[:, 1:].flatten()).backward()
    by_hand = {n: p.grad for n, p in full.named_parameters() if p.grad is not None}
    ours = gradients(cut)
    assert ours.keys() == by_hand.keys()
    for name in ours:
        torch.testing.assert_close(ours[name], by_hand[name], rtol=1e-9, atol=1e-12)
    assert any((ours[n] - g).abs().max() > 1e-6 for n, g in gradients(full).items() if n in ours)


def test_the_loss_is_that_of_the_logits():
    """Training and evaluation never make the logits: value, gradient and nats are the same."""
    model = make(recurrences=3)
    row = tokens(length=13)
    inputs, targets = row[:, :-1], row[:, 1:]
    expected = gradients(model)
    model.zero_grad()
    loss = model.loss(inputs, targets)
    loss.backward()
    torch.testing.assert_close(loss, loss_of(model), rtol=1e-12, atol=0)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-9, atol=1e-14)
    nats = model.nats(inputs, targets, recurrences=5)
    assert nats.shape == targets.shape
    torch.testing.assert_close(nats.mean(), loss_of(model, recurrences=5), rtol=1e-12, atol=0)


def saved_bytes(model: LoopedTransformer) -> int:
    """Bytes that the graph of one forward pass keeps for the backward pass."""
    total = 0

    def count(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal total
        total += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        loss_of(model)
    return total


def test_truncated_passes_keep_no_activations():
    """Each pass with gradient keeps the same amount, and each pass without keeps none."""
    kept = [saved_bytes(make(recurrences=6, truncation_depth=k)) for k in (1, 2, 3, 6)]
    assert kept[1] - kept[0] == kept[2] - kept[1] > 0
    assert kept[3] - kept[2] == 3 * (kept[1] - kept[0])
    assert saved_bytes(make(recurrences=9, truncation_depth=2)) == kept[1]


CHECKPOINTED = [
    {"injection": "linear"},
    {"injection": "additive", "truncation_depth": 3},
    {"streams": 2},
    {"streams": 3, "truncation_depth": 2},
    {"shared": False},
]


@pytest.mark.parametrize("arguments", CHECKPOINTED, ids=str)
def test_activation_checkpointing_changes_no_gradient(arguments):
    """The same bits: what is computed again is what was forgotten."""
    plain = make(recurrences=4, **arguments)
    frugal = make(recurrences=4, activation_checkpointing=True, **arguments)
    expected, ours = gradients(plain), gradients(frugal)
    assert ours.keys() == expected.keys()
    for name, gradient in ours.items():
        assert torch.equal(gradient, expected[name]), name


@pytest.mark.parametrize(("depth", "again"), [(None, 5), (3, 2), (1, 0)])
def test_checkpointed_passes_run_twice_and_keep_their_input_alone(depth, again):
    """Passes without gradient and the last one, whose backward comes at once, run only once."""
    model = make(recurrences=6, truncation_depth=depth, activation_checkpointing=True)
    calls = []
    model.recurrent[0].register_forward_hook(lambda *_: calls.append(torch.is_grad_enabled()))
    loss_of(model).backward()
    assert len(calls) == 6 + again
    calls.clear()
    with torch.no_grad():
        model(tokens())
    assert len(calls) == 6


def test_a_checkpointed_pass_keeps_its_input_alone():
    """The state and e, which all passes share, each (B T D); not what its blocks work with."""

    def kept_by_three_passes(**arguments) -> int:
        return saved_bytes(make(recurrences=9, **arguments)) - saved_bytes(
            make(recurrences=6, **arguments)
        )

    state = 2 * 12 * 16 * 8
    assert kept_by_three_passes(activation_checkpointing=True) == 3 * 2 * state
    assert kept_by_three_passes() > 3 * 40 * state


@pytest.mark.parametrize(
    "arguments", [{"streams": 2}, {"injection": "none"}, {"injection": "linear"}], ids=str
)
def test_no_parameter_is_left_without_gradient(arguments):
    """DDP stops at a trainable parameter that takes no part in the loss: there must be none."""
    model = make(recurrences=3, truncation_depth=1, **arguments)
    reached = gradients(model)
    assert reached.keys() == {n for n, p in model.named_parameters() if p.requires_grad}
    assert ("embed.weight" in reached) == ("linear" in arguments.values())


def test_stream_parameters_of_passes_without_gradient_are_not_trained():
    """Their gradient is exactly zero, that of the last k passes is not."""
    model = make(streams=2, recurrences=4, truncation_depth=2)
    for name in ("alpha", "mixing", "beta"):
        gradient = gradients(model)[f"injection.{name}"]
        assert gradient[:2].abs().max() == 0
        assert (gradient[2:].flatten(1).abs().sum(1) > 0).all()


@pytest.mark.parametrize("arguments", [{"injection": "linear"}, {"streams": 2}], ids=str)
def test_other_recurrence_counts_at_evaluation(arguments):
    """A pass count given to forward equals a model built with it; streams repeat mod r."""
    trained = make(recurrences=2, **arguments)
    other = make(recurrences=5, **arguments)
    state = trained.state_dict()
    if isinstance(trained.injection, Streams):
        for name in ("alpha", "mixing", "beta"):
            rows = state[f"injection.{name}"]
            state[f"injection.{name}"] = rows[torch.arange(5) % 2]
    other.load_state_dict(state)
    with torch.no_grad():
        torch.testing.assert_close(trained(tokens(), recurrences=5), other(tokens()))
        assert not torch.allclose(trained(tokens(), recurrences=5), trained(tokens()))


def test_zero_recurrences_are_refused():
    with pytest.raises(UserError, match="recurrences 0"):
        make()(tokens(), recurrences=0)


def test_grouped_heads_equal_repeated_ones():
    """A key/value head serves num_heads / num_kv_heads neighbouring query heads."""
    grouped = make(num_heads=4, num_kv_heads=2)
    full = make(num_heads=4)
    state = full.state_dict() | {
        name: value.view(2, 1, 4, 16).expand(2, 2, 4, 16).reshape(16, 16)
        if name.endswith((".k.weight", ".v.weight"))
        else value
        for name, value in grouped.state_dict().items()
    }
    full.load_state_dict(state)
    torch.testing.assert_close(full(tokens()), grouped(tokens()), rtol=1e-10, atol=1e-12)


def test_no_token_sees_a_later_one():
    """Changing the last token changes no earlier logits."""
    model = make()
    one, other = tokens(), tokens()
    other[:, -1] = (other[:, -1] + 1) % 50
    torch.testing.assert_close(model(one)[:, :-1], model(other)[:, :-1], rtol=0, atol=0)


def test_initial_values():
    """Standard deviations, identity injection and cyclic streams of DESIGN.md section 2."""
    torch.manual_seed(0)
    model = LoopedTransformer(width=128, num_heads=2, vocab_size=4096, recurrences=3)
    assert model.embed.weight.std().item() == pytest.approx(1.0, rel=0.01)
    assert model.head.weight.std().item() == pytest.approx(0.001, rel=0.01)
    for matrix in (model.prelude[0].q, model.recurrent[0].down):
        fan_in = matrix.in_features
        assert matrix.weight.std().item() == pytest.approx(fan_in**-0.5, rel=0.02)
        assert matrix.weight.abs().max().item() <= (3 / fan_in) ** 0.5
    eye = torch.eye(128)
    assert torch.equal(model.injection.weight, torch.cat((eye, torch.zeros(128, 128)), 1))
    streams = Streams(2, 3)
    assert streams.alpha.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert torch.equal(streams.mixing, torch.eye(2).expand(3, 2, 2))
    assert streams.beta.tolist() == [[1, 1]] * 3


def test_logits_are_float32_under_autocast():
    """Softcap and loss must not run in bfloat16."""
    model = LoopedTransformer(**SIZES)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(tokens()).dtype == torch.float32


def test_positions_turn_by_the_published_frequencies():
    """Angle of position p in pair i is p * 10000^(-i / (C/2)): closed form, pair by pair."""
    cos, sin = rotation(7, 8, torch.zeros((), dtype=torch.float64))
    for p in range(7):
        angles = torch.tensor([p * 10_000 ** (-i / 4) for i in range(4)], dtype=torch.float64)
        torch.testing.assert_close(cos[p, 0], angles.cos())
        torch.testing.assert_close(sin[p, 0], angles.sin())


def test_softcap_bounds_the_logits_and_can_be_left_out():
    """C tanh(z / c) of the uncapped logits."""
    capped, free = make(logit_softcap=0.05), make(logit_softcap=None)
    free.load_state_dict(capped.state_dict())
    z = free(tokens())
    torch.testing.assert_close(capped(tokens()), 0.05 * torch.tanh(z / 0.05))


def test_each_pass_changes_the_state():
    """More passes are not the same function: the loop really runs r times."""
    outputs = [make(recurrences=4)(tokens(), recurrences=r) for r in (1, 2, 3, 4)]
    assert all((a - b).abs().max() > 1e-4 for a, b in pairwise(outputs))


def test_compiled_blocks_share_two_graphs_and_change_nothing():
    """Whatever the number of recurrences: one graph with gradient, one without; same names."""
    torch._dynamo.reset()
    counter = CompileCounter()
    plain, compiled = make(recurrences=4), make(recurrences=4)
    compiled.compile_blocks(backend=counter)
    with torch.no_grad():
        for r in range(1, 17):
            expected = plain(tokens(), recurrences=r)
            torch.testing.assert_close(compiled(tokens(), recurrences=r), expected)
    loss_of(compiled).backward()
    assert counter.frame_count <= 2
    assert compiled.state_dict().keys() == plain.state_dict().keys()


@pytest.mark.parametrize("arguments", [{"streams": 2}, {"truncation_depth": 1}, {}], ids=str)
def test_unshared_copies_of_one_block_are_the_shared_block(arguments):
    """Same wiring: with equal copies the control computes what the loop does, at any count."""
    shared = make(recurrences=3, **arguments)
    unshared = make(recurrences=3, shared=False, **arguments)
    state = {k: v for k, v in shared.state_dict().items() if not k.startswith("recurrent.")}
    for name, value in shared.state_dict().items():
        if name.startswith("recurrent."):
            _, number, rest = name.split(".", 2)
            for t in range(3):
                state[f"recurrent.{t * 2 + int(number)}.{rest}"] = value
    unshared.load_state_dict(state)
    for r in (1, 3, 5):
        torch.testing.assert_close(
            unshared(tokens(), recurrences=r), shared(tokens(), recurrences=r)
        )
    reached = gradients(unshared).keys()
    assert reached == {n for n, p in unshared.named_parameters() if p.requires_grad}
