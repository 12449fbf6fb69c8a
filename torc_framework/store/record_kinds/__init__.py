"""Record kinds of the store."""
