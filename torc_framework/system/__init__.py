"""This machine: its processes, shells and users, and the owners and modes of its files."""
