"""Language of the spec."""
