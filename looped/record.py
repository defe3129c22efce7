"""The record: what a training run leaves behind for the fitter, schema 1.

One record lives in two places that are written together: `run.json` in the run directory, and the
entry "looped" of every checkpoint. Plain JSON types only, so that a checkpoint holding it loads
with `torch.load(weights_only=True)`; and no torch here, so that a fit never imports it.
"""

import collections
import json
import pickle
import zipfile
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from looped.atomic_write import write_atomically

SCHEMA = 1
CHECKPOINT_KEY = "looped"
RUN_FILE = "run.json"
CONFIG_FILE = "config.yaml"
LOCK_FILE = ".lock"  # held by the process that trains in the run directory
CHECKPOINT_DIR = "checkpoints"
LAST_CHECKPOINT = "last.ckpt"
METRICS_FILE = "metrics.csv"

Status = Literal["running", "complete", "stopped", "diverged"]


class RecordError(Exception):
    """A file holds no readable record; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Validation:
    """One pass over the validation rows.

    Attributes:
        step: optimizer steps done before it.
        tokens: training tokens consumed before it.
        train_flops: training FLOPs spent before it, in the record's convention.
        loss: nats per token, sum of nats / sum of tokens; null when it was not finite.
        bits_per_byte: the same sum in bits over the UTF-8 bytes of the targets; null when the
            loss is, or when the data does not tell the bytes of its tokens.
        tokens_evaluated: targets that entered the loss.
        recurrences: r of the evaluated forward pass.
    """

    step: int
    tokens: int
    train_flops: int
    loss: float | None
    bits_per_byte: float | None
    tokens_evaluated: int
    recurrences: int


@dataclass(kw_only=True)
class Record:
    """What one run was, did and reached.

    Attributes:
        run: name of the run, unique within its sweep.
        recipe: the name under which runs are fitted together.
        status: `complete` means that the planned horizon was reached, so that the learning rate
            has decayed, and that a full validation followed.
        seed: of weights and data order; null when none was set.
        versions: of looped, python and the libraries that trained it.
        started: ISO 8601, UTC.
        wall_s: seconds spent training, over all starts.
        model: every constructor argument of the architecture.
        params: embedding, head, prelude, recurrent, coda, injection, norms, total, n_once, n_rec.
        flops: convention, per_token, train, budget, measured_per_token (null for models that are
            not `LoopedLM`), optimizer (per step).
        progress: step, tokens, epochs, planned_steps, planned_tokens, and diverged_step, the step
            at which the training loss was lost; null when it was not.
        validation: in the order in which they happened.
        data: fingerprint, source, tokenizer, vocab_size, seq_len; null for foreign data.
        optimizer: group, rule, parameters and full learning rate of every parameter group; empty
            in records of other origin.
    """

    run: str
    recipe: str
    status: Status
    seed: int | None
    versions: dict[str, str]
    started: str
    wall_s: float
    model: dict[str, Any]
    params: dict[str, int]
    flops: dict[str, Any]
    progress: dict[str, Any]
    validation: list[Validation] = field(default_factory=list)
    data: dict[str, Any] | None = None
    optimizer: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The record as plain JSON types, `schema` first."""
        return {"schema": SCHEMA} | asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> "Record":
        """Rebuild a record from `as_json`.

        Raises:
            RecordError: not a record, another schema, or a field is missing.
        """
        if not isinstance(content, dict) or "schema" not in content:
            raise RecordError("not a looped record")
        if content["schema"] != SCHEMA:
            raise RecordError(f"schema {content['schema']} is not {SCHEMA}, the one known here")
        try:
            known = {f.name: content[f.name] for f in fields(cls) if f.name != "optimizer"}
            known["optimizer"] = content.get("optimizer", [])
            known["validation"] = [
                Validation(**{f.name: entry[f.name] for f in fields(Validation)})
                for entry in content["validation"]
            ]
        except (KeyError, TypeError) as error:
            raise RecordError(f"the record lacks {error}") from error
        if known["status"] not in get_args(Status):
            raise RecordError(f"unknown status {known['status']!r}")
        for name, kinds in _KINDS.items():
            if not isinstance(known[name], kinds):
                raise RecordError(f"its record has {name} = {known[name]!r}")
        for entry in known["validation"]:
            if not isinstance(entry.loss, float | int | None):
                raise RecordError(f"a validation loss is {entry.loss!r}")
        return cls(**known)

    def write(self, run_dir: Path) -> None:
        """Write `run.json` into `run_dir`, whole and renamed into place."""
        text = json.dumps(self.as_json(), indent=2, allow_nan=False)
        write_atomically(run_dir / RUN_FILE, text + "\n")


_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("run", "recipe", "started"), str),
    **dict.fromkeys(("versions", "model", "params", "flops", "progress"), dict),
    "data": (dict, type(None)),
    "optimizer": list,
}


def read_run_file(path: Path) -> Record:
    """Read a `run.json`.

    Raises:
        RecordError: unreadable, not JSON, or not a record.
    """
    try:
        return Record.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise RecordError(f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"not JSON: {error}") from error


def read_checkpoint(path: Path) -> Record:
    """Read the record of a Lightning checkpoint; its tensors are neither loaded nor mapped.

    A checkpoint is a zip archive whose `data.pkl` holds everything but the tensors' bytes. That
    pickle is read with every class replaced by an inert stand-in, so that nothing in it can run.

    Raises:
        RecordError: unreadable, truncated, damaged, not a checkpoint, or without a record.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            (name,) = [n for n in archive.namelist() if n.split("/", 1)[-1] == "data.pkl"]
            with archive.open(name) as stream:
                content = _InertUnpickler(stream).load()
    except OSError as error:
        raise RecordError(f"cannot be read: {error.strerror}") from error
    except zipfile.BadZipFile as error:
        raise RecordError(f"truncated or damaged: {error}") from error
    except Exception as error:  # a damaged pickle may raise anything at all
        raise RecordError(f"not a checkpoint: {error}") from error
    if not isinstance(content, dict) or CHECKPOINT_KEY not in content:
        raise RecordError(f'a checkpoint without the entry "{CHECKPOINT_KEY}"')
    return Record.from_json(content[CHECKPOINT_KEY])


class _Inert:
    """Stands for any object of a checkpoint that is not a plain container or number."""

    def __new__(cls, *args: Any, **kwargs: Any) -> "_Inert":
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __setstate__(self, state: Any) -> None: ...

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __hash__(self) -> int:
        return id(self)


class _InertUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        return _Inert

    def persistent_load(self, pid: Any) -> Any:
        return _Inert()
