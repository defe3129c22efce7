"""How fast text becomes rows, rows become batches, and how much memory that takes.

    python benchmarks/data_speed.py                 about a minute on two idle cores
    python benchmarks/data_speed.py --memory 2000   also the memory, on 2,000 MB of made-up text

Each line shows what was measured and what is wanted.
"""

import argparse
import itertools
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tokenizers
import torch
from measuring import in_turns, report

from looped.datamodules.batches import TrainStream
from looped.datamodules.make_tokenizer import train_bpe
from looped.datamodules.prepare import prepare
from looped.datamodules.row_reader import RowReader
from looped.datamodules.row_store import RowWriter
from looped.datamodules.text_sources import stdlib_source
from looped.modules.looped_transformer import LoopedTransformer
from looped.optimizers.learning_rates import LearningRates
from looped.optimizers.recipe import make_optimizer

TOKENS_STORED = 2**26
DEMO_SEQ_LEN, DEMO_BATCH_SIZE, DEMO_VOCAB = 128, 4, 512


def preparing(directory: Path) -> None:
    """Tokenise, pack, write and check, against `encode_batch` alone on the same text."""
    texts = list(dict.fromkeys(d.text for d in stdlib_source().documents() if d.text))
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    path = directory / "tokenizer.json"
    path.write_text(train_bpe(texts, 1024).to_json(), encoding="utf-8")

    alone_s, whole_s = [], []
    for turn, packing in enumerate(["concat", "best_fit", "concat"]):
        backend = tokenizers.Tokenizer.from_file(str(path))
        start = time.perf_counter()
        backend.encode_batch(texts, add_special_tokens=False)
        alone_s.append(time.perf_counter() - start)
        start = time.perf_counter()
        prepare(
            source="stdlib",
            out=directory / f"rows-{turn}",
            seq_len=128,
            tokenizer=str(path),
            packing=packing,
        )
        whole_s.append(time.perf_counter() - start)
    share = min(alone_s) / min(whole_s)
    speed = megabytes / min(whole_s)
    report(
        "prepare, of encode_batch alone",
        f"{share:.0%} ({speed:.1f} MB/s)",
        ">= 80 %",
        met=share >= 0.8,
    )


def a_store(directory: Path, seq_len: int) -> tuple[str, int, int]:
    """A row store of random tokens: its directory, its rows, and its rows per chunk."""
    rows = TOKENS_STORED // (seq_len + 1)
    writer = RowWriter(directory, row_length=seq_len + 1, dtype="uint16")
    generator = np.random.default_rng(0)
    for first in range(0, rows, 1024):
        count = min(1024, rows - first)
        writer.write(generator.integers(0, 2**15, (count, seq_len + 1), dtype=np.uint16))
    stored = writer.close()
    return str(directory), stored.rows, stored.rows_per_chunk


def a_stream(
    store: tuple[str, int, int], seq_len: int, batch_size: int, workers: int
) -> TrainStream:
    """The training stream over a store."""
    directory, rows, rows_per_chunk = store
    return TrainStream(
        RowReader(directory, row_length=seq_len + 1),
        rows=rows,
        rows_per_chunk=rows_per_chunk,
        seed=0,
        fingerprint="",
        batch_size=batch_size,
        num_workers=workers,
    )


def loading(directory: Path) -> None:
    """Batches of long rows, from each number of loader processes."""
    seq_len, batch_size = 2048, 16
    store = a_store(directory / "long", seq_len)
    speeds = {}
    for workers in (0, 1, 2):
        stream = a_stream(store, seq_len, batch_size, workers)
        batches = iter(stream)
        next(batches)  # starts the processes and opens the files
        start = time.perf_counter()
        tokens = sum(targets.numel() for _, targets in batches)
        speeds[workers] = tokens / (time.perf_counter() - start)
    best = max(speeds, key=lambda workers: speeds[workers])
    shown = ", ".join(f"{workers}: {speed / 1e6:.0f}" for workers, speed in speeds.items())
    report(
        "loader alone at T = 2048, M tokens/s",
        f"by processes {shown}",
        ">= 20 (best)",
        met=speeds[best] >= 20e6,
    )


def a_step() -> float:
    """Seconds per training step of the demo's smallest and quickest model."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = LoopedTransformer(
        width=16,
        num_heads=1,
        prelude_layers=1,
        recurrent_layers=8,
        coda_layers=1,
        recurrences=1,
        vocab_size=DEMO_VOCAB,
        seq_len=DEMO_SEQ_LEN,
    )
    optimizer = make_optimizer(network, LearningRates())
    tokens = torch.randint(0, DEMO_VOCAB, (DEMO_BATCH_SIZE, DEMO_SEQ_LEN))

    def step() -> None:
        network.loss(tokens, tokens).backward()
        optimizer.step()
        optimizer.zero_grad()

    return statistics.median(in_turns({"step": step}, rounds=20)["step"])


def step_share(directory: Path) -> None:
    """What the loader takes of the demo's shortest training step."""
    store = a_store(directory / "short", DEMO_SEQ_LEN)
    stream = a_stream(store, DEMO_SEQ_LEN, DEMO_BATCH_SIZE, workers=0)
    batches = iter(stream)
    next(batches)
    start = time.perf_counter()
    for _ in itertools.islice(batches, 2000):
        pass
    load_s = (time.perf_counter() - start) / 2000
    step_s = a_step()
    report(
        "loader's share of a demo step",
        f"{load_s / step_s:.2%} ({load_s * 1e6:.0f} us of {step_s * 1e3:.1f} ms)",
        "<= 2 %",
        met=load_s / step_s <= 0.02,
    )


def made_up_lines(megabytes: int) -> Iterator[bytes]:
    """JSON lines of made-up words, common and rare ones by Zipf's law, as in text from the web."""
    vocabulary = np.array([f"{number:x}" for number in range(2_000_000)])
    generator = np.random.default_rng(0)
    written = 0
    while written < megabytes * 1e6:
        words = vocabulary[(len(vocabulary) ** generator.random(800)).astype(np.int64)]
        line = b'{"text": "' + " ".join(words.tolist()).encode() + b'"}\n'
        written += len(line)
        yield line


def memory(directory: Path, megabytes: int) -> None:
    """Greatest memory of `looped prepare` on a source of this size, in a process of its own."""
    with (directory / "source.jsonl").open("wb") as stream:
        stream.writelines(made_up_lines(megabytes))
    command = [sys.executable, "-m", "looped", "prepare", "--source", "jsonl"]
    command += ["--paths", str(directory / "source.jsonl"), "--out", str(directory / "large")]
    command += ["--seq_len", "2048", "--tokenizer", "bpe:4096", "--packing", "best_fit"]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    elapsed_s = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    report(
        f"memory of preparing {megabytes:,} MB",
        f"{peak / 1e6:.0f} MB ({elapsed_s:.0f} s)",
        "< 1,000 MB",
        met=peak < 1e9,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=int, metavar="MB", help="also prepare so much text")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        preparing(directory)
        loading(directory)
        step_share(directory)
        if arguments.memory:
            memory(directory, arguments.memory)


if __name__ == "__main__":
    main()
