"""Mistakes that all runs share, found by a worker before any run starts."""

import pytest
import torch

from looped.errors import UserError
from looped.sweeps.check import refuse_mistakes
from looped.sweeps.grid import read_grid
from looped.sweeps.plan import plan_sweep
from looped.sweeps.workers import Workers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def check():
    """Checks the runs of a grid; one worker for all tests: importing torch takes seconds."""
    with Workers(1) as workers:

        def of(grid, *, elsewhere=False):
            runs = plan_sweep(read_grid(grid))
            refuse_mistakes(runs, workers=workers, elsewhere=elsewhere)

        yield of


def test_what_can_start_passes_and_leaves_nothing(check, write_grid, tmp_path):
    """Neither the sweep's directory nor anything else beside the grid."""
    grid = write_grid(recipes={"cut": {"truncation_depth": "half"}, "two": {"streams": 2}})
    before = sorted(tmp_path.iterdir())
    check(grid)
    assert sorted(tmp_path.iterdir()) == before


CPU = {"accelerator": "cpu"}


@pytest.mark.parametrize(
    ("base", "recipes", "words"),
    [
        ({"horizn": {"steps": 9}}, {}, "unknown name horizn"),
        ({"trainer": CPU | {"precisoin": 16}}, {}, "did you mean trainer.precision?"),
        ({"data": {"data_dir": "nowhere", "batch_size": 4}}, {}, "no prepared data in nowhere"),
        ({"trainer": CPU | {"strategy": "fdsp"}}, {}, "fdsp"),
        ({}, {"cut": {"head_lr": "low"}}, "run cut-r2-d8-D6.4e2-s0 cannot start: model.head_lr"),
        ({}, {"cut": {"warmup_fraction": 2}}, "warmup_fraction 2"),
        ({}, {"cut": {"optimizer": "torch.optim.SDG"}}, "SDG"),
    ],
    ids=["section", "setting", "data", "strategy", "kind", "value", "optimizer"],
)
def test_mistakes_have_the_words_of_fit(check, write_grid, base, recipes, words):
    """Of the base, and of a recipe that is not the first; r = 1 runs do not know recipes."""
    with pytest.raises(UserError) as caught:
        check(write_grid(base, recipes={"baseline": {}} | recipes))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "words"),
    [({"vocab_size": 512}, "has vocab_size 512"), ({"seq_len": 32}, "has seq_len 32")],
    ids=str,
)
def test_data_of_other_models(check, write_grid, model, words):
    section = {"width": 8, "num_heads": 1, "vocab_size": 300, "seq_len": 16} | model
    with pytest.raises(UserError, match=words):
        check(write_grid({"model": section}))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has what the runs ask for")
def test_runs_for_other_machines(check, write_grid):
    """A cluster's login node need not have the GPUs; one's own machine must."""
    trainer = {"accelerator": "gpu", "devices": 8, "num_nodes": 2, "strategy": "ddp"}
    grid = write_grid({"trainer": trainer | {"precision": "bf16-mixed"}}, tokens={"6.4e4": [8]})
    check(grid, elsewhere=True)
    with pytest.raises(UserError, match=r"[Gg][Pp][Uu]"):
        check(grid)
    with pytest.raises(UserError, match=r"did you mean trainer\.precision"):
        check(write_grid({"trainer": {"precisoin": 16}}), elsewhere=True)
