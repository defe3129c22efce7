"""Which strategies train what `looped` measures."""

import pytest
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


def test_one_process_ddp_and_our_fsdp2_are_taken():
    for strategy in (SingleDeviceStrategy("cpu"), DDPStrategy(), FullyShardedStrategy()):
        check_strategy(strategy)
