"""Train looped transformers with Lightning and measure what one recurrence is worth.

The package is a house with the ground floor first; a room uses only what lies below it:

    architecture, record     what a model is and what a run leaves behind (plain Python)
    modules, optimizers      the network and its training rule (torch)
    datamodules              text -> tokens -> batches (litdata)
    callbacks                the measurement during training (Lightning)
    scaling                  records -> phi (numpy, scipy, lmfit; neither torch nor Lightning)
    report                   phi and its figures -> one HTML page
    sweeps                   a grid of runs from one YAML
    training, cli            one run; the command line
"""

__version__ = "0.1.0"
