"""The runs of a workflow: begin, initialize, reset, cancel, run again what has changed; its status and counts."""
