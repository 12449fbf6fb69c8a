"""Slurm's accounting: rows of steps that have ended, shared between runners, and the state of an allocation."""
