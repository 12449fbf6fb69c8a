"""What the dashboard and the terminal user interface share: reads of a workflow, its logs, and the offered commands."""
