"""Access of the store."""
