"""Connection of the runner."""
