"""Resolution of names into positions, and construction of the plan."""
