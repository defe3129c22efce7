"""The command line: the only place that knows every command; imports one when it is called.

A mistake of the user ends here: one line on stderr, exit status 2, no traceback.
"""

import argparse
import difflib
import importlib
import os
import re
import shlex
import sys
from collections.abc import Sequence
from typing import NoReturn

from looped import __version__
from looped.errors import UserError

# LightningCLI parses these itself (looped/training.py).
TRAINING_COMMANDS = {
    "fit": "train one run from a YAML configuration",
    "validate": "validation loss of a checkpoint, also at another recurrence count",
    "test": "the same as validate: prepared data has no third split",
    "predict": "nats of every validation target, written into the run directory",
}

# Each lives in looped/commands/<name>.py.
COMMANDS = {
    "prepare": "text -> tokens on disk",
    "count": "parameters and FLOPs of a configuration, without training it",
    "sweep": "a grid of runs from one YAML",
    "phi": "runs -> phi, its interval, diagnostics, figures",
    "report": "runs -> one HTML page to read and send, with its figures",
    "compare": "two recipes -> delta phi with a joint interval",
    "equivalent": "what a looped size is worth: equal-loss and equal-cost plain size",
    "demo": "all of it on this machine's CPU in minutes",
}

COMMANDS_WITH_ACTIONS = {"sweep"}

USER_ERROR_STATUS = 2
INTERRUPTED_STATUS = 130
BROKEN_PIPE_STATUS = 141  # 128 + SIGPIPE, as shells have it


class CommandParser(argparse.ArgumentParser):
    """An argparse parser whose complaints are `UserError`s, so that they become one line."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage."""
        unknown = re.match(r"unrecognized arguments: (--[^\s=]+)", message)
        if unknown:
            nearest = difflib.get_close_matches(unknown[1], _options(self), n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"see {self.prog} --help"
            raise UserError(f"unknown option {unknown[1]}: {hint}")
        raise UserError(f"{message} (see {self.prog} --help)")


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """Options of a parser and of its actions."""
    names: list[str] = []
    for action in parser._actions:
        names += action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for actions_parser in action.choices.values():
                names += _options(actions_parser)
    return names


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments[0] if arguments else "--help"
    try:
        status = _run(command, arguments[1:])
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of `looped ... | head` has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python flushes when it ends
        return BROKEN_PIPE_STATUS
    except UserError as error:
        name = f"looped {command}" if command in COMMANDS | TRAINING_COMMANDS else "looped"
        print(f"{name}: error: {error}", file=sys.stderr)
        return USER_ERROR_STATUS
    except KeyboardInterrupt:
        print(f"looped {command}: interrupted", file=sys.stderr)
        return INTERRUPTED_STATUS


def _run(command: str, arguments: list[str]) -> int:
    if command in ("--help", "-h", "help"):
        print(_overview())
        return 0
    if command in ("--version", "version"):
        print(f"looped {__version__}")
        return 0
    if command in TRAINING_COMMANDS:
        training = importlib.import_module("looped.training")
        return int(training.main([command, *arguments]))
    if command in COMMANDS:
        module = importlib.import_module(f"looped.commands.{command}")
        return int(module.run(parse_arguments(command, arguments)))
    raise UserError(_unknown(command))


def parse_arguments(command: str, arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments of one of `COMMANDS`, checked as far as its parser can.

    Raises:
        UserError: unknown or impossible ones.
    """
    module = importlib.import_module(f"looped.commands.{command}")
    parser = CommandParser(
        prog=f"looped {command}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    parser.set_defaults(command_line=shlex.join(["looped", command, *arguments]))
    # Intermixed, so that sources may follow options; argparse cannot do that with actions.
    if command in COMMANDS_WITH_ACTIONS:
        return parser.parse_args(arguments)
    return parser.parse_intermixed_args(arguments)


def _overview() -> str:
    lines = [
        "usage: looped COMMAND [options]      (looped COMMAND --help explains one)",
        "",
        "Train looped transformers and measure what one recurrence is worth.",
        "",
    ]
    for name, purpose in (TRAINING_COMMANDS | COMMANDS).items():
        lines.append(f"  {name:<11} {purpose}")
    return "\n".join(lines)


def _unknown(command: str) -> str:
    names = list(TRAINING_COMMANDS | COMMANDS)
    nearest = difflib.get_close_matches(command, names, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"choose {', '.join(names)}"
    return f"unknown command {command!r}: {hint}"
