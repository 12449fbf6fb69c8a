"""What pages and screens draw a workflow from: counts, graph, timeline, failures, waits, sweep, jobs."""
