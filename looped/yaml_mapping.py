"""Read a YAML file that must map keys to values: a configuration, a grid."""

from pathlib import Path
from typing import Any

from looped.errors import UserError


def read_mapping(path: Path) -> dict[str, Any]:
    """The content of a YAML file that maps keys to values.

    Raises:
        UserError: unreadable, not YAML, or something else; the message leaves the file unnamed.
    """
    import yaml  # here, so that the help of a command does not wait for it

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(str(error.strerror)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UserError("is not a mapping of keys to values")
    return content
