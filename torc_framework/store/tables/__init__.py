"""Tables of the store."""
