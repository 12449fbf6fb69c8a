"""Setup of the commands."""
