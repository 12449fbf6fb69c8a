"""Definitions that all other folders use: options, paths, and the states and times that Slurm prints."""
