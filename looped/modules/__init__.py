"""The looped transformer and the LightningModule around it."""
