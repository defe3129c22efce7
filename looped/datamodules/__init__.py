"""From text to tokens on disk to batches."""
