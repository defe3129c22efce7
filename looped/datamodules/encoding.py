"""Documents to tokens in batches, one batch ahead of whoever consumes them.

The tokenizer uses all cores but lets Python run meanwhile, so the next batch is encoded in a
thread while the current one is packed and written.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from looped.datamodules.packing import Tokens
from looped.datamodules.split import SplitDocument
from looped.datamodules.tokenizer import Tokenizer

# Enough work for every core, little enough to hold three of them in memory.
BATCH_BYTES = 4 * 2**20
_BATCHES_AHEAD = 2

_Encoded = tuple[list[SplitDocument], list[Tokens]]


def encode_documents(
    documents: Iterable[SplitDocument], tokenizer: Tokenizer
) -> Iterator[tuple[SplitDocument, Tokens]]:
    """Each document with its tokens (without BOS), in order."""

    def encode(batch: list[SplitDocument]) -> _Encoded:
        return batch, tokenizer.encode_batch([document.text for document in batch])

    with ThreadPoolExecutor(max_workers=1) as pool:
        ahead: deque[Future[_Encoded]] = deque()
        for batch in _batches(documents):
            ahead.append(pool.submit(encode, batch))
            if len(ahead) > _BATCHES_AHEAD:
                yield from zip(*ahead.popleft().result(), strict=True)
        while ahead:
            yield from zip(*ahead.popleft().result(), strict=True)


def _batches(documents: Iterable[SplitDocument]) -> Iterator[list[SplitDocument]]:
    batch: list[SplitDocument] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += document.bytes
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
