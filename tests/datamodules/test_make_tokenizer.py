"""A name gives the tokenizer it stands for."""

import subprocess
import sys

import pytest
import tokenizers

from looped.datamodules import make_tokenizer
from looped.datamodules.make_tokenizer import bpe_size, load_tokenizer, train_bpe
from looped.datamodules.tokenizer import BOS, ByteTokenizer
from looped.errors import UserError

TEXTS = ["def café(x):\n\treturn '日本' * 3  # 🙂\r\n", "the loop runs again and again"]


def test_training_is_the_same_in_another_process():
    """Without it, two machines would give the same data different fingerprints."""
    program = (
        "from looped.datamodules.make_tokenizer import train_bpe;"
        f"print(train_bpe({TEXTS!r} * 5, 280).to_json(), end='')"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program], capture_output=True, check=True
    )
    assert done.stdout.decode("utf-8") == train_bpe(TEXTS * 5, 280).to_json()


def test_training_gives_the_size_asked_for_with_bos():
    """Without it, the model's vocabulary would not be the data's."""
    trained = train_bpe(TEXTS * 5, 280)
    assert trained.vocab_size == 280
    assert BOS in trained.to_json()


def test_too_little_text_for_the_vocabulary_is_refused():
    """Without it, the model would have tokens that no text can contain."""
    with pytest.raises(UserError, match=r"yields only 2\d\d tokens, not 5000: use --tokenizer bpe"):
        train_bpe(["only this"], 5000)


def test_training_text_is_bounded(monkeypatch):
    """Without it, the word counts of a 10 GB source would fill the memory."""
    monkeypatch.setattr(make_tokenizer, "BPE_TRAINING_CHARACTERS", 10)
    given = iter(["123456", "789012", "over the limit", "never read"])
    assert train_bpe(given, 257).vocab_size == 257
    assert list(given) == ["never read"]


@pytest.mark.parametrize(
    ("specification", "size"), [("bpe:1024", 1024), ("bpe:257", 257), ("bytes", None)]
)
def test_bpe_specifications(specification, size):
    """Without it, a specification would be taken for another one."""
    assert bpe_size(specification) == size


def test_a_vocabulary_without_room_for_every_byte_is_refused():
    """Without it, some text could not be encoded."""
    with pytest.raises(UserError, match="at least 257"):
        bpe_size("bpe:256")


@pytest.mark.parametrize("size", ["99999999999999999999999", "16777217", "9" * 5000])
def test_a_vocabulary_that_no_memory_holds_is_refused(size):
    """Without it, a digit too many would be an overflow in the library, or the memory's end."""
    with pytest.raises(UserError, match="N is at most 16777216, not "):
        bpe_size(f"bpe:{size}")


def test_bytes_and_files_are_loaded(tmp_path):
    """Without it, only tokenizers trained here could be used."""
    assert isinstance(load_tokenizer("bytes"), ByteTokenizer)
    trained = train_bpe(TEXTS * 5, 280)
    (tmp_path / "tokenizer.json").write_text(trained.to_json())
    loaded = load_tokenizer(str(tmp_path / "tokenizer.json"))
    assert loaded.encode_batch(TEXTS)[0].tolist() == trained.encode_batch(TEXTS)[0].tolist()


def test_a_hub_name_is_asked_of_the_hub(monkeypatch):
    """Without it, `--tokenizer gpt2` would be taken for a file."""
    asked = []
    backend = tokenizers.Tokenizer.from_str(ByteTokenizer().to_json())

    class Hub:
        @staticmethod
        def from_pretrained(name):
            asked.append(name)
            return backend

        from_file = None

    monkeypatch.setattr(make_tokenizer.tokenizers, "Tokenizer", Hub)
    assert load_tokenizer("owner/name").vocab_size == 257
    assert asked == ["owner/name"]


def unreachable(name):
    raise RuntimeError("no connection\nand more lines")


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ("missing.json", "missing.json: there is no such file"),
        ("bpe1024", r"unknown tokenizer 'bpe1024': write bpe:N"),
        ("owner/none", r"'owner/none' is not bpe:N, .* on the hub: no connection$"),
        (__file__, "is not bpe:N, bytes, a tokenizer.json"),
    ],
)
def test_what_names_no_tokenizer_is_refused(specification, message, monkeypatch):
    """Without it, a typing error would be a traceback of the library."""
    real = tokenizers.Tokenizer

    class Hub:
        from_file = real.from_file
        from_pretrained = staticmethod(unreachable)

    monkeypatch.setattr(make_tokenizer.tokenizers, "Tokenizer", Hub)
    with pytest.raises(UserError, match=message):
        load_tokenizer(specification)
