"""What the benchmarks share: timing in turns, memory, and the line that each of them prints."""

import os
import statistics
import time
from collections.abc import Callable, Mapping

os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # its profiler announces itself on stderr

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile


def report(what: str, measured: str, wanted: str, *, met: bool) -> None:
    """Print one line; benchmarks/table.py makes a table of such lines."""
    print(f"{'ok  ' if met else 'MISS'} | {what} | {measured} | {wanted}", flush=True)


def note(what: str, measured: str) -> None:
    """Print a line about which nothing is promised."""
    print(f"info | {what} | {measured} |", flush=True)


def in_turns(
    ways: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    warm_up: int = 2,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Seconds of each way in each round, all ways once a round: ABABAB...

    CPU time of this process, so that others who use the same cores do not count; and whatever slows
    the machine down for a while slows neighbours alike, so that ratios hold where seconds do not.

    Args:
        ways: name -> what to do.
        rounds: how often.
        warm_up: rounds before, which do not count.
        clock: time.perf_counter for what waits: for a device, a disk, a process.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for number in range(-warm_up, rounds):
        # every other round backwards, so that none always follows the same one
        for name in names if number % 2 else reversed(names):
            started = clock()
            ways[name]()
            elapsed = clock() - started
            if number >= 0:
                seconds[name].append(elapsed)
    return seconds


def median_ratio(ours: list[float], theirs: list[float]) -> float:
    """Median over the rounds of ours / theirs."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def saved_bytes(forward: Callable[[], Tensor]) -> int:
    """Bytes that the graph of a forward pass keeps for the backward pass.

    Every storage counts once, however many operations keep it; parameters do not count.
    """
    storages: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        if not isinstance(tensor, torch.nn.Parameter):
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = forward()
    total = sum(storages.values())
    del result
    return total


def peak_bytes(work: Callable[[], object]) -> int:
    """Most bytes that tensors hold at a time during `work`, above those held before.

    From the allocations that torch's profiler sees, those of every operation in order.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        work()
    assert seen.profiler is not None
    kineto = seen.profiler.kineto_results
    assert kineto is not None
    changes = [(e.start_ns(), e.nbytes()) for e in kineto.events() if e.name() == "[memory]"]
    held = peak = 0
    for _, change in sorted(changes, key=lambda entry: entry[0]):
        held += change
        peak = max(peak, held)
    return peak
