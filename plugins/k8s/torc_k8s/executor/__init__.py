"""The launcher: keeps one pod for each attempt, and reports how attempts ended."""
