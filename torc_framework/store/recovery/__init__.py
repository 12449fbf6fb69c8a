"""Recovery of the store."""
