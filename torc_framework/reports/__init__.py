"""Reports on a workflow: use of resources against requirements, results with their logs, a summary."""
