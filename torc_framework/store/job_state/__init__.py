"""Job state of the store."""
