"""Programs of the cli."""
