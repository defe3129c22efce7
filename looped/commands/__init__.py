"""One file per command of `looped` that is not LightningCLI's own.

Each has `add_arguments(parser)`, which must stay cheap (no numpy, no torch: `--help` answers at
once), and `run(arguments) -> int`, which imports what it needs and returns the exit status.
"""
