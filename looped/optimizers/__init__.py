"""The training rule: parameter groups, their learning rates and the schedule."""
