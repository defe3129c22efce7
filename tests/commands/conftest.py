"""The sweep of seconds, for the commands about sweeps."""

from tests.sweeps.conftest import write_grid

__all__ = ["write_grid"]
