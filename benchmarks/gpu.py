"""Training on a GPU: throughput, share of the peak, and that nothing waits for the device.

    python benchmarks/gpu.py              ten minutes on one GPU; says so when there is none
    python benchmarks/gpu.py --dry-run    the same path on the CPU, with a model of no size

Under the Trainer as `looped fit` sets it up, bf16-mixed, 2 + 16/r + 2 layers, width 64 s rounded up
to 128, T = 2,048, for s = 10, 20, 34 and r = 1 and 4, each with plain and with compiled blocks:

- tokens per second; model FLOPs per second (DESIGN.md section 3) by the speed of a bf16 matrix
  product of 8,192 x 8,192 on the same device, and by the data sheet where it is known;
- every step between two logging intervals runs under `set_sync_debug_mode("error")`, where an
  operation that waits for the device raises;
- attention runs with every backend but flash forbidden;
- AdamW runs fused.
"""

import argparse
import statistics
import time
from dataclasses import dataclass
from typing import Any

import torch
from measuring import in_turns, note, report
from torch.nn.attention import SDPBackend, sdpa_kernel
from trainer_steps import TrainerSteps

# Dense bf16 with float32 accumulation, FLOP/s, from the data sheets.
DATA_SHEET = {"A100": 312e12, "H100": 989e12, "H200": 989e12, "B200": 2250e12}
STEPS = 12


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where and how large."""

    accelerator: str
    precision: str
    sizes: tuple[int, ...]
    seq_len: int
    vocab_size: int
    tokens_per_step: int

    @property
    def on_gpu(self) -> bool:
        """Whether it is the real thing."""
        return self.accelerator == "gpu"


GPU = Place(
    accelerator="gpu",
    precision="bf16-mixed",
    sizes=(10, 20, 34),
    seq_len=2048,
    vocab_size=32_001,
    tokens_per_step=32_768,
)
DRY = Place(
    accelerator="cpu",
    precision="bf16-mixed",
    sizes=(1,),
    seq_len=32,
    vocab_size=100,
    tokens_per_step=64,
)


def wait(place: Place) -> None:
    """Until the device has done what it was given."""
    if place.on_gpu:
        torch.cuda.synchronize()


def product_speed(place: Place) -> float:
    """FLOP/s of a large bf16 matrix product."""
    size = 8192 if place.on_gpu else 256
    device = "cuda" if place.on_gpu else "cpu"
    a, b = (torch.randn(size, size, dtype=torch.bfloat16, device=device) for _ in range(2))

    def product() -> None:
        a @ b
        wait(place)

    return (
        2
        * size**3
        / statistics.median(in_turns({"ab": product}, rounds=20, clock=time.perf_counter)["ab"])
    )


def model_of(size: int, recurrences: int, place: Place) -> dict[str, Any]:
    """The paper's shape at one size."""
    width = -(-64 * size // 128) * 128
    return {
        "width": width,
        "num_heads": width // 128,
        "prelude_layers": 2,
        "recurrent_layers": 16 // recurrences,
        "coda_layers": 2,
        "recurrences": recurrences,
        "vocab_size": place.vocab_size,
        "seq_len": place.seq_len,
    }


def step_s(model: dict[str, Any], place: Place) -> float:
    """Seconds per step; raises when a step waits for the device or attention is not flash."""
    trained = TrainerSteps(
        model,
        batch_size=place.tokens_per_step // place.seq_len,
        accelerator=place.accelerator,
        devices=1,
        precision=place.precision,
        log_every_n_steps=10**6,
    )
    # Divergence reads its verdict every 50 steps, which is the logging interval of `looped fit`.
    with trained, sdpa_kernel(SDPBackend.FLASH_ATTENTION if place.on_gpu else SDPBackend.MATH):
        for _ in range(3):
            trained.step()
        wait(place)
        if place.on_gpu:
            torch.cuda.set_sync_debug_mode("error")
        try:
            started = time.perf_counter()
            for _ in range(STEPS):
                trained.step()
        finally:
            if place.on_gpu:
                torch.cuda.set_sync_debug_mode("default")
        wait(place)
        return (time.perf_counter() - started) / STEPS


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="the same path on the CPU")
    place = DRY if parser.parse_args().dry_run else GPU
    if place.on_gpu and not torch.cuda.is_available():
        note("GPU: throughput, share of the peak, no waiting", "not measured: no GPU here")
        return
    name = torch.cuda.get_device_name() if place.on_gpu else "CPU, dry run"
    speed = product_speed(place)
    note(f"bf16 matrix product, {name}", f"{speed / 1e12:.3g} TFLOP/s")
    sheet = next((peak for known, peak in DATA_SHEET.items() if known in name), None)
    for size in place.sizes:
        for recurrences in (1, 4):
            for compiled in (False, True) if place.on_gpu else (False,):
                model = model_of(size, recurrences, place) | {"compile_blocks": compiled}
                seconds = step_s(model, place)
                flops = flops_per_token(model) * place.tokens_per_step / seconds
                shares = f"{flops / speed:.0%} of the product"
                if sheet is not None:
                    shares += f", {flops / sheet:.0%} of the data sheet"
                blocks = "compiled" if compiled else "plain"
                note(
                    f"s = {size}, r = {recurrences}, {blocks} blocks, {name}",
                    f"{place.tokens_per_step / seconds:,.0f} tokens/s, {shares}",
                )
    report("steps between logging intervals wait for the device", "none", "none", met=True)


def flops_per_token(model: dict[str, Any]) -> int:
    """F of a model."""
    from looped.architecture import Architecture

    names = Architecture.__dataclass_fields__
    return Architecture(**{k: v for k, v in model.items() if k in names}).flops_per_token()


if __name__ == "__main__":
    main()
