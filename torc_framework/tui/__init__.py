"""The terminal user interface, ``torc tui``: workflows, jobs, logs and events in a terminal, and commands by keys."""
