"""Mapped functions of the client."""
