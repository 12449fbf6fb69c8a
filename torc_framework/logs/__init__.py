"""Logs of runs: their file names, bundles of them, and the search for lines of known errors."""
