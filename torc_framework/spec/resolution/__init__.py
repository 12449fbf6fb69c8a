"""Resolution of the spec."""
