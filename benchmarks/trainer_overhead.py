"""What Lightning's Trainer and the callbacks add to a training step.

    python benchmarks/trainer_overhead.py        two minutes

A step of `LoopedLM` under the Trainer, as `looped fit` sets it up, against the same step in a bare
loop, in turns: r = 4 with 2-4-2 layers, T = 256, float32, CPU time, one thread. The time of the
callbacks is what Lightning's own profiler counts for them, by the clock.
"""

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from lightning.pytorch.profilers import SimpleProfiler
from measuring import in_turns, median_ratio, note, report
from trainer_steps import TrainerSteps

from looped.modules.looped_transformer import LoopedTransformer
from looped.optimizers.recipe import make_optimizer

SIZES = {128: (2, 4, 1.05, 24), 512: (8, 2, 1.01, 10)}  # width: heads, rows, limit, rounds
OURS = ("Compute", "ValidationLoss", "Horizon", "RunRecord", "Divergence", "Checkpoints")
CALLBACK_LIMIT = 0.005


def model_of(width: int) -> dict[str, Any]:
    """Arguments of `LoopedLM` at a width."""
    return {"width": width, "num_heads": SIZES[width][0], "vocab_size": 1024, "seq_len": 256}


def overhead(width: int) -> None:
    """The Trainer's step against a bare one."""
    _, rows, limit, rounds = SIZES[width]
    with TrainerSteps(model_of(width), batch_size=rows) as under_trainer:
        network = LoopedTransformer(**model_of(width))
        plan = under_trainer.model.plan
        assert plan is not None
        rates = under_trainer.model.rates.transferred(network.architecture, plan)
        optimizer = make_optimizer(network, rates)
        inputs, targets = under_trainer.data.batch

        def bare() -> None:
            optimizer.zero_grad()
            network.loss(inputs, targets).backward()
            optimizer.step()

        # in a thread as the Trainer is: memory is allotted to threads differently
        with ThreadPoolExecutor(max_workers=1) as thread:
            ways = {"trainer": under_trainer.step, "bare": lambda: thread.submit(bare).result()}
            seconds = in_turns(ways, rounds=rounds)
    ratio = median_ratio(seconds["trainer"], seconds["bare"])
    bare_s = statistics.median(seconds["bare"])
    report(
        f"training step under the Trainer / bare loop, d = {width}, {rows} rows",
        f"{ratio:.3f} x ({bare_s * 1e3:.0f} ms, {(ratio - 1) * bare_s * 1e3:+.1f} ms)",
        f"<= {limit:.2f} x",
        met=ratio <= limit,
    )


def callbacks() -> None:
    """The measuring callbacks' share of a step."""
    profiler = SimpleProfiler()
    with TrainerSteps(model_of(128), batch_size=4, profiler=profiler) as under_trainer:
        for _ in range(2):
            under_trainer.step()  # the first steps are slow
        profiler.recorded_durations.clear()
        step = {"step": under_trainer.step}
        seconds = in_turns(step, rounds=40, warm_up=0, clock=time.perf_counter)["step"]
        durations = {k: list(v) for k, v in profiler.recorded_durations.items()}
    spent = {
        name: sum(sum(v) for k, v in durations.items() if k.startswith(f"[Callback]{name}"))
        for name in OURS
    }
    share = sum(spent.values()) / sum(seconds)
    report(
        "compute ledger and all other callbacks, of a step at d = 128",
        f"{share:.2%} ({sum(spent.values()) / len(seconds) * 1e6:.0f} us)",
        f"<= {CALLBACK_LIMIT:.1%}",
        met=share <= CALLBACK_LIMIT,
    )
    each = ", ".join(f"{name} {s / len(seconds) * 1e6:.0f} us" for name, s in spent.items())
    note("of that", each)


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    callbacks()
    for width in SIZES:
        overhead(width)


if __name__ == "__main__":
    main()
