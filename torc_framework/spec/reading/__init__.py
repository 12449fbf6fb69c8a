"""Reading of the spec."""
