"""Exchange of the store."""
