"""Running of the commands."""
