"""A file or run that was left out of the fit, and why. Nothing is dropped without one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Exclusion:
    """One thing left out.

    Attributes:
        run: name of the run, or path of the file.
        why: the reason in words.
    """

    run: str
    why: str
