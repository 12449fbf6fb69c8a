"""Calls of Slurm's programs: run once, again after a failure, or in the background; each call is logged."""
