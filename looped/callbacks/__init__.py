"""The measurement: callbacks that count compute, measure the loss and write the record."""
