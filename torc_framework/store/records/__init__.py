"""Records of the store."""
