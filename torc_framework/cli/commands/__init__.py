"""Commands of the cli."""
