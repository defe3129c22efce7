"""The one exception that means: the user can mend this.

The command line prints a `UserError` as one line and leaves with exit status 2; every other
exception is a bug of ours and keeps its traceback. The message says what is wrong, where, and what
to do about it.
"""


class UserError(ValueError):
    """A mistake in what the user gave: a value, a file, a combination of arguments."""
