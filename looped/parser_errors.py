"""jsonargparse's complaints in one line: what was given, what fits, which name was meant."""

import difflib
import re
from collections.abc import Iterable

CANNOT_BE_MADE = "Problem with given class_path"  # a class of the user's: missing, or refusing


def one_line(message: str, known_names: Iterable[str]) -> str:
    """Condense a message of jsonargparse.

    Args:
        message: its own text, often of many lines.
        known_names: dotted names that would have been valid, to offer the nearest.
    """
    unknown = _unknown_name(message)
    if unknown is not None:
        return f"unknown name {unknown}{_nearest(unknown, known_names)}"
    key = re.search(r'key "([\w.]+)"', message)
    at_key = f"{key[1]}: " if key else ""
    cannot_be_made = re.search(rf"{CANNOT_BE_MADE} '(.+?)':\s*(.+)", message)
    if cannot_be_made:
        return f"{at_key}{cannot_be_made[1]}: {cannot_be_made[2].strip()}"
    part = re.search(r"NestedArg\(key='([\w.]+)'", message)
    if key and part:
        return f"unknown name {key[1]}.{part[1]}{_beside(key[1], known_names)}"
    value = re.search(r"(?:Got|Given) value: (.*?)\s*$", message, re.DOTALL)
    expected = re.findall(r"Expected an? (typing\.\w+\[.*?\]|<class '\w+'>)", message)
    if key and value and expected:
        kinds = " or ".join(dict.fromkeys(_kind(text) for text in expected))
        return f"{key[1]}: got {' '.join(value[1].split())}, expected {kinds}"
    return " ".join(message.split())


def _unknown_name(message: str) -> str | None:
    for pattern in (
        r"[Uu]nrecognized arguments?: --([\w.]+)",
        r"[Kk]ey '?\"?([\w.]+?)'?\"? is not expected",
    ):
        found = re.search(pattern, message)
        if found:
            return found[1]
    found = re.search(r"(Group|Subcommand) '([\w.]+)' does not accept option '([\w.]+)'", message)
    if found:
        return f"{found[2]}.{found[3]}" if found[1] == "Group" else found[3]
    return None


def _nearest(name: str, known_names: Iterable[str]) -> str:
    known = list(known_names)
    candidates = {key: key for key in known} | {key.rsplit(".", 1)[-1]: key for key in known}
    meant = [candidates[close] for close in _close_to(name, candidates)]
    section, sections = name.split(".", 1)[0], {key.split(".", 1)[0] for key in known}
    if not meant and section not in sections:  # a name of its own in a misspelt section
        meant = _close_to(section, sections)
    return f": did you mean {meant[0]}?" if meant else ": see --help for valid names"


def _close_to(name: str, others: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name, list(others), n=1, cutoff=0.75)


def _beside(name: str, known_names: Iterable[str]) -> str:
    """Where the parts of a name that has none may be found: `optimizer_args` beside `optimizer`."""
    others = [known for known in known_names if known.startswith(f"{name}_")]
    hint = f"; there is {', '.join(others)}" if others else ""
    return f": {name} is one value without parts{hint}"


def _kind(text: str) -> str:
    """A type in words: `<class 'int'>` is int, NoneType is null, a Literal its values."""
    if text.startswith("typing.Literal["):
        return text.removeprefix("typing.Literal[").removesuffix("]").replace("'", "")
    name = re.sub(r"<class '(\w+)'>", r"\1", text)
    return {"NoneType": "null", "int": "a whole number", "float": "a number"}.get(name, name)
