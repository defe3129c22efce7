"""What Lightning and torch say that is not for the user is left out; the rest becomes one line."""

import logging
import warnings
from pathlib import Path

PACKAGE = Path(__file__).parent

NOISY_LOGGERS = (
    "lightning.pytorch.utilities.rank_zero",
    "lightning.fabric.utilities.rank_zero",
)


def silence_what_is_not_the_users() -> None:
    """Leave out what Lightning says about its own inside or about a product.

    What is left for the user to read is one line, without our source code below it.
    """
    warnings.formatwarning = _warning_line
    # lightning 2.6 calls what jsonargparse 4.49 and torch 2.14 deprecated
    # (Lightning-AI/pytorch-lightning#21900)
    warnings.filterwarnings("ignore", category=DeprecationWarning, module="lightning")
    warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated")
    warnings.filterwarnings("ignore", message="LightningCLI's args parameter")
    # RunDirectory has set the earlier ones aside
    warnings.filterwarnings("ignore", message="Experiment logs directory .* exists")
    # TrainStream shares its batches between loader processes itself
    warnings.filterwarnings("ignore", message="Your `IterableDataset` has `__len__` defined")
    # ValidationLoss has added the processes up itself
    warnings.filterwarnings("ignore", message="It is recommended to use `self.log")
    for name in NOISY_LOGGERS:
        logging.getLogger(name).addFilter(_concerns_the_user)
    logging.getLogger("lightning.fabric.utilities.seed").setLevel(logging.WARNING)


_lightnings_format = warnings.formatwarning


def _warning_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """A warning of ours as one line; those of others as Lightning has them."""
    if Path(filename).is_relative_to(PACKAGE):
        return f"looped: warning: {message}\n"
    return _lightnings_format(message, category, filename, lineno, line)


def _concerns_the_user(entry: logging.LogRecord) -> bool:
    # the summary says how far the run came
    noise = ("Tip:", "available: False", "`Trainer.fit` stopped: `max_steps")
    return not any(words in entry.getMessage() for words in noise)
