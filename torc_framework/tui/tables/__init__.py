"""Tables whose rows are asked for as they come into view, and what each list of a workflow shows."""
