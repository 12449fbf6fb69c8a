"""Process of the runner."""
