"""The base configuration of a sweep, as far as planning needs it: read without LightningCLI."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from looped.architecture import CONVENTIONS, Architecture, Convention
from looped.errors import UserError
from looped.model_arguments import refuse_unknown
from looped.yaml_mapping import read_mapping

SINGLE_PROCESS = (None, "auto", "single_device")
ON_GPU = (None, "auto", "gpu", "cuda")

LIMITS: dict[str, tuple[Any, ...]] = {
    "max_steps": (None, -1),
    "max_epochs": (None, -1),
    "max_time": (None,),
    "limit_train_batches": (None, 1.0),
    "limit_val_batches": (None, 1.0),
    "overfit_batches": (None, 0),
    "fast_dev_run": (None, False),
}
"""Settings of the trainer by which a run would see less than planned, and their neutral values."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """A `looped fit` configuration that the runs of a sweep share.

    Attributes:
        path: the file.
        content: its keys and values.
        rows_per_step: training rows per optimizer step, over all processes.
        convention: how FLOPs are counted.
        data_dir: the prepared data; null when it is not data of `looped prepare`.
        processes: training processes of one run, over all its nodes.
        nodes: machines of one run.
        guessed_devices: whether the number of devices is left to Lightning; one is planned with.
        one_process: whether a run trains in a single process without a strategy of its own.
        takes_any_gpu: whether a run may train on any GPUs: it asks for a number of them at most.
    """

    path: Path
    content: dict[str, Any]
    rows_per_step: int
    convention: Convention
    data_dir: str | None
    processes: int
    nodes: int
    guessed_devices: bool
    one_process: bool
    takes_any_gpu: bool

    @property
    def model(self) -> dict[str, Any]:
        """The `model` section."""
        section: dict[str, Any] = self.content["model"]
        return section

    @property
    def head_dim(self) -> int | None:
        """Width / num_heads of the base model; null when it names none."""
        try:
            return int(self.model["width"]) // int(self.model["num_heads"])
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return None

    def tokens_per_step(self, architecture: Architecture) -> int:
        """B, training tokens per optimizer step."""
        return self.rows_per_step * architecture.seq_len


def read_base(path: Path) -> Base:
    """Read a base configuration.

    Raises:
        UserError: unreadable, without a model, or a value that planning needs is missing or wrong.
    """
    try:
        return make_base(path, read_mapping(path))
    except UserError as error:
        raise UserError(f"base {path}: {error}") from error


def make_base(path: Path, content: dict[str, Any]) -> Base:
    """The base configuration of a file's content.

    Raises:
        UserError: as `read_base`; the message leaves the file unnamed.
    """
    if not isinstance(content.get("model"), dict):
        raise UserError("has no section `model`")
    refuse_unknown(content["model"])
    data, trainer, compute = (_section(content, name) for name in ("data", "trainer", "compute"))
    data |= data.get("init_args") or {}  # a data module named by its class path
    convention = compute.get("convention", CONVENTIONS[0])
    if convention not in CONVENTIONS:
        raise UserError(
            f"compute.convention {convention!r} is unknown: choose {' or '.join(CONVENTIONS)}"
        )
    if "batch_size" not in data:
        raise UserError("data.batch_size is missing: the rows per batch and process")
    data_dir = data.get("data_dir")
    if not (data_dir is None or (isinstance(data_dir, str) and data_dir)):
        raise UserError(f"data.data_dir: {data_dir!r} is not text: name a directory")
    _refuse_limits(trainer)
    devices = trainer.get("devices", "auto")
    on_cpu = trainer.get("accelerator") == "cpu"
    guessed = devices in ("auto", None, -1, "-1")
    num_devices = 1 if guessed else _num_devices(devices)
    nodes = _positive("trainer.num_nodes", trainer.get("num_nodes", 1))
    rows = _positive("data.batch_size", data["batch_size"])
    rows *= _positive("trainer.accumulate_grad_batches", trainer.get("accumulate_grad_batches", 1))
    return Base(
        path=path,
        content=content,
        rows_per_step=rows * num_devices * nodes,
        convention=convention,
        data_dir=data_dir,
        processes=num_devices * nodes,
        nodes=nodes,
        guessed_devices=guessed and not on_cpu,
        one_process=num_devices * nodes == 1
        and (not guessed or on_cpu)
        and trainer.get("strategy") in SINGLE_PROCESS,
        takes_any_gpu=trainer.get("accelerator") in ON_GPU and not _are_named(devices),
    )


def _section(content: dict[str, Any], name: str) -> dict[str, Any]:
    section = content.get(name) or {}
    if not isinstance(section, dict):
        raise UserError(f"{name}: is not a section of keys and values")
    return dict(section)


def _are_named(devices: Any) -> bool:
    """Whether devices are given by their indices: a list, or text with commas."""
    return isinstance(devices, list) or (isinstance(devices, str) and "," in devices)


def _num_devices(devices: Any) -> int:
    """A number, a list of indices, or either as text, as Lightning takes it."""
    if isinstance(devices, str) and "," in devices:
        devices = [part for part in devices.split(",") if part.strip()]
    if isinstance(devices, list):
        return _positive("the number of trainer.devices", len(devices))
    return _positive("trainer.devices", devices)


def _refuse_limits(trainer: dict[str, Any]) -> None:
    for name, neutral in LIMITS.items():
        value = trainer.get(name)
        # 1 means one batch, and 1.0 all of them
        if value not in neutral or (name.startswith("limit_") and isinstance(value, int)):
            raise UserError(
                f"trainer.{name}: {value!r} would keep runs from the horizon or the loss that the "
                "grid plans: leave it out"
            )


def _positive(name: str, value: Any) -> int:
    try:
        number = int(str(value))  # 4.7, .inf and true are none
    except ValueError:
        raise UserError(f"{name}: {value!r} is not a whole number") from None
    if number < 1:
        raise UserError(f"{name}: {value!r} is below 1: choose 1 or more")
    return number
