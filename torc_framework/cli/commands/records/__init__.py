"""Records of the commands."""
