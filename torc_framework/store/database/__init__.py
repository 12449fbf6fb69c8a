"""Database of the store."""
