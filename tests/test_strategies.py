"""Which strategies train what `looped` measures."""

import pytest
import torch
from lightning.fabric.plugins.environments import (
    ClusterEnvironment,
    LightningEnvironment,
    SLURMEnvironment,
    TorchElasticEnvironment,
)
from lightning.pytorch.strategies import (
    DDPStrategy,
    FSDPStrategy,
    ModelParallelStrategy,
    SingleDeviceStrategy,
)

from looped.errors import UserError
from looped.strategies import FullyShardedStrategy, check_strategy


@pytest.mark.parametrize("strategy", [FSDPStrategy, ModelParallelStrategy])
def test_strategies_with_other_results_are_refused(strategy):
    """FSDP1 hands MuonH flat pieces of matrices; Lightning's FSDP2 resumes inexactly."""
    with pytest.raises(UserError, match=rf"{strategy.__name__} .* configs/strategies/ddp.yaml"):
        check_strategy(strategy())


def on_two_devices(
    kind: type[DDPStrategy | FullyShardedStrategy], environment: ClusterEnvironment
) -> DDPStrategy | FullyShardedStrategy:
    strategy = kind()
    strategy.cluster_environment = environment
    strategy.parallel_devices = [torch.device("cpu")] * 2
    return strategy


@pytest.mark.parametrize("kind", [DDPStrategy, FullyShardedStrategy])
def test_one_process_ddp_and_our_fsdp2_are_taken(kind):
    check_strategy(SingleDeviceStrategy("cpu"))
    check_strategy(on_two_devices(kind, LightningEnvironment()))


@pytest.mark.parametrize("kind", [DDPStrategy, FullyShardedStrategy])
@pytest.mark.parametrize(
    ("environment", "variables"),
    [
        (TorchElasticEnvironment, {"WORLD_SIZE": "4"}),
        (SLURMEnvironment, {"SLURM_JOB_NAME": "looped", "SLURM_NTASKS_PER_NODE": "4"}),
        (SLURMEnvironment, {"SLURM_JOB_NAME": "looped", "SLURM_NNODES": "4"}),
    ],
    ids=["torchrun", "slurm tasks", "slurm nodes"],
)
def test_another_number_of_processes_than_was_started_is_refused(
    kind, environment, variables, monkeypatch
):
    """They would wait for one another, or train a run of another batch size."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="does not match"):
        check_strategy(on_two_devices(kind, environment()))
