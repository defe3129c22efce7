"""MuonH against a float64 reference and an SVD, its AdamW against torch's."""

import copy

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from looped.optimizers import muonh
from looped.optimizers.muonh import POLAR_EXPRESS, MuonH, orthogonalize


def matrices() -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    shapes = [(8, 8), (8, 32), (32, 8), (8, 8), (8, 16)]
    return [torch.nn.Parameter(torch.randn(s, generator=generator)) for s in shapes]


def set_gradients(parameters, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for p in parameters:
        p.grad = torch.randn(p.shape, generator=generator)


def test_orthogonalize_against_the_singular_value_decomposition():
    """Same singular vectors as the SVD's, singular values within 15 % of one."""
    generator = torch.Generator().manual_seed(3)
    stack = torch.randn(4, 16, 48, generator=generator, dtype=torch.float64)
    u, _, vh = torch.linalg.svd(stack, full_matrices=False)
    result = orthogonalize(stack)
    inner = u.mT @ result @ vh.mT  # diagonal, with the new singular values
    values = torch.diagonal(inner, dim1=-2, dim2=-1)
    off_diagonal = inner - torch.diag_embed(values)
    assert off_diagonal.abs().max() < 1e-10
    assert (values - 1).abs().max() < 0.15


@pytest.mark.parametrize("shape", [(32, 32), (32, 48), (32, 64), (32, 128)])
@pytest.mark.parametrize("smallest", [1e-1, 1e-3, 1e-6])
def test_orthogonalize_is_five_polynomials_of_the_singular_values(shape, smallest):
    """However the products are arranged; in float32 as exact as single iterations would be."""
    rows, columns = shape
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(2, rows, columns, generator=generator, dtype=torch.float64)
    u, _, vh = torch.linalg.svd(noise, full_matrices=False)
    before = torch.logspace(0, np.log10(smallest), rows, dtype=torch.float64)
    matrix = u * before @ vh
    values = before / (1.02 * before.norm() + 1e-6)
    for a, b, c in POLAR_EXPRESS:
        values = a * values + b * values**3 + c * values**5
    expected = u * values @ vh
    error = (orthogonalize(matrix) - expected).norm() / expected.norm()
    assert error < 1e-10
    error = (orthogonalize(matrix.float()) - expected).norm() / expected.norm()
    assert error < 5e-5  # all five iterations on X X^T alone: 1e-3


def test_zero_gradient_leaves_a_matrix_where_it_is():
    """A matrix that no gradient has reached must neither move nor become NaN."""
    w = torch.nn.Parameter(torch.randn(4, 6, generator=torch.Generator().manual_seed(0)))
    before = w.detach().clone()
    w.grad = torch.zeros_like(w)
    MuonH([{"params": [w], "rule": "muonh", "lr": 0.1}]).step()
    torch.testing.assert_close(w.detach(), before)


def reference_step(w, m, g, lr, norm):
    """MuonH in NumPy float64, one matrix at a time."""
    m = 0.95 * m + 0.05 * g
    x = 0.05 * g + 0.95 * m
    x = x / (1.02 * np.linalg.norm(x) + 1e-6)
    for a, b, c in POLAR_EXPRESS:
        gram = x.T @ x  # the other side than ours: the polynomial is the same
        x = a * x + b * x @ gram + c * x @ gram @ gram
    w = w - lr * x * norm / np.linalg.norm(x)
    return w * norm / np.linalg.norm(w), m


def test_updates_equal_the_reference_for_every_shape():
    """Square, wide, tall and stacked matrices, ten steps."""
    parameters = matrices()
    optimizer = MuonH([{"params": parameters, "rule": "muonh", "lr": 0.03}])
    ws = [p.detach().double().numpy().copy() for p in parameters]
    ms = [np.zeros_like(w) for w in ws]
    norms = [np.linalg.norm(w) for w in ws]
    for step in range(10):
        set_gradients(parameters, step)
        for i, p in enumerate(parameters):
            ws[i], ms[i] = reference_step(ws[i], ms[i], p.grad.double().numpy(), 0.03, norms[i])
        optimizer.step()
    for p, w in zip(parameters, ws, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), w, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("kibibytes", [0, 1, 1024])
def test_however_many_are_updated_at_a_time(monkeypatch, kibibytes):
    """One by one, some, or all of a shape: every matrix is updated, each exactly once."""
    parameters, reference = matrices(), matrices()
    one_stack = MuonH([{"params": reference, "rule": "muonh", "lr": 0.03}])
    optimizer = MuonH([{"params": parameters, "rule": "muonh", "lr": 0.03}])
    for step in range(3):
        set_gradients(parameters, step)
        set_gradients(reference, step)
        monkeypatch.setattr(muonh, "CACHE_BYTES", 1024 * kibibytes)
        optimizer.step()
        monkeypatch.setattr(muonh, "CACHE_BYTES", 2**40)
        one_stack.step()
    for ours, theirs in zip(parameters, reference, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_norms_stay_where_they_began():
    """Over 100 steps the Frobenius norms move by less than 1e-5."""
    parameters = matrices()
    before = [p.norm().item() for p in parameters]
    optimizer = MuonH([{"params": parameters, "rule": "muonh", "lr": 0.05}])
    for step in range(100):
        set_gradients(parameters, step)
        optimizer.step()
    assert [p.norm().item() for p in parameters] == pytest.approx(before, rel=1e-5)


def test_adamw_groups_equal_torch_step_by_step():
    ours, theirs = matrices(), matrices()
    optimizer = MuonH([{"params": ours, "lr": 0.01}])
    reference = torch.optim.AdamW(theirs, lr=0.01, betas=(0.8, 0.95), eps=1e-10, weight_decay=0)
    for step in range(20):
        set_gradients(ours, step)
        set_gradients(theirs, step)
        optimizer.step()
        reference.step()
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_adamw_in_one_kernel_equals_torchs(monkeypatch):
    """What a GPU runs, on the CPU, taken up from a checkpoint that another kernel wrote."""
    ours, theirs = matrices(), matrices()
    rule = {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-10, "weight_decay": 0}
    before, reference = MuonH([{"params": ours, "lr": 0.01}]), torch.optim.AdamW(theirs, **rule)
    for step in range(2):
        set_gradients(ours, step)
        set_gradients(theirs, step)
        before.step()
        reference.step()
    monkeypatch.setattr(muonh, "_one_kernel", lambda parameters: True)
    optimizer = MuonH([{"params": ours, "lr": 0.01}])
    optimizer.load_state_dict(copy.deepcopy(before.state_dict()))
    fused = torch.optim.AdamW(theirs, **rule, fused=True)
    fused.load_state_dict(copy.deepcopy(reference.state_dict()))
    fused.param_groups[0]["fused"] = True
    for step in range(2, 10):
        set_gradients(ours, step)
        set_gradients(theirs, step)
        optimizer.step()
        fused.step()
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_matrix_work_equals_what_torch_counts():
    """The optimizer FLOPs of the record against torch's counter over one real step."""
    parameters = matrices()
    set_gradients(parameters, 0)
    optimizer = MuonH([{"params": parameters, "rule": "muonh", "lr": 0.1}])
    with FlopCounterMode(display=False) as counter:
        optimizer.step()
    assert optimizer.matrix_flops() == counter.get_total_flops()


def test_state_survives_a_checkpoint(tmp_path):
    """Saved with weights_only types, loaded into a new optimizer, it goes on bit for bit."""
    parameters = matrices()
    groups = [
        {"params": parameters[:3], "rule": "muonh", "lr": 0.03},
        {"params": parameters[3:], "lr": 0.01},
    ]
    optimizer = MuonH(groups)
    for step in range(3):
        set_gradients(parameters, step)
        optimizer.step()
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    copies = copy.deepcopy(parameters)
    resumed = MuonH(
        [
            {"params": copies[:3], "rule": "muonh", "lr": 0.0},
            {"params": copies[3:], "lr": 0.0},
        ]
    )
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for step in range(3, 6):
        for ps, opt in ((parameters, optimizer), (copies, resumed)):
            set_gradients(ps, step)
            opt.step()
    for a, b in zip(parameters, copies, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_what_is_no_matrix_or_rule_is_refused():
    vector = torch.nn.Parameter(torch.zeros(3))
    with pytest.raises(ValueError, match="matrices"):
        MuonH([{"params": [vector], "rule": "muonh", "lr": 0.1}])
    with pytest.raises(ValueError, match="'sgd'"):
        MuonH([{"params": [vector], "rule": "sgd", "lr": 0.1}])
