"""Read a YAML file that must map keys to values: a configuration, a grid.

YAML wants the keys of a mapping to differ; PyYAML takes the last of two without a word, and would
so leave out half of what the user wrote.
"""

import contextlib
from pathlib import Path
from typing import Any

from looped.errors import UserError

MERGE = "<<"  # takes in the keys of other mappings; may stand more than once


def read_mapping(path: Path) -> dict[str, Any]:
    """The content of a YAML file that maps keys to values.

    Numbers are as YAML 1.1 reads them: 1e6 and 2.5e5 are text, 2.5e+5 is a number.

    Raises:
        UserError: unreadable, not YAML, something else, or a key given twice; the message leaves
            the file unnamed.
    """
    import yaml  # here, so that the help of a command does not wait for it

    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        loader.name = path.name  # in messages, in the place of "<unicode string>"
        try:
            document = loader.get_single_node()
            _refuse_repeated_keys(document, seen=set())
            content = None if document is None else loader.construct_document(document)
        finally:
            loader.dispose()
    except OSError as error:
        raise UserError(str(error.strerror)) from error
    except UserError:
        raise
    except (yaml.YAMLError, ValueError) as error:  # the latter of text, numbers, dates
        raise UserError(f"not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UserError("is not a mapping of keys to values")
    return content


def refuse_repeated_keys(text: str) -> None:
    """Refuse a key given twice in a text that something else will read as YAML.

    Raises:
        UserError: with both lines; not where the text is no YAML, of which its reader will tell.
    """
    import yaml

    with contextlib.suppress(yaml.YAMLError):
        _refuse_repeated_keys(yaml.compose(text, Loader=yaml.SafeLoader), seen=set())


def _refuse_repeated_keys(node: Any, *, seen: set[int]) -> None:
    """Look through a document as it is written, before anchors and merges are resolved.

    Args:
        node: the document or a part of it, as PyYAML composed it; null when it is empty.
        seen: the parts looked at before, to which an anchor may lead back.
    """
    import yaml

    if not isinstance(node, yaml.CollectionNode) or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for entry in node.value:
            _refuse_repeated_keys(entry, seen=seen)
        return
    first: dict[float | str, yaml.ScalarNode] = {}
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value != MERGE:
            before = first.setdefault(_meaning(key.value), key)
            if before is not key:
                raise UserError(
                    f"the key {key.value} on line {key.start_mark.line + 1} repeats "
                    f"{before.value} on line {before.start_mark.line + 1}: keep one of the two"
                )
        _refuse_repeated_keys(value, seen=seen)


def _meaning(key: str) -> float | str:
    """What a key stands for: 2.5e5, which YAML 1.1 reads as text, is the number 250000."""
    try:
        number = float(key)
    except ValueError:
        return key
    return key if number != number else number
