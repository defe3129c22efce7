"""A grid of runs from one YAML: planned, launched, resumed. Starts training, does not know it."""
