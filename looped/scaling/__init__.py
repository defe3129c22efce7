"""From records to phi: reading runs, the law, its fit, intervals, figures.

Imports neither torch nor Lightning.
"""
