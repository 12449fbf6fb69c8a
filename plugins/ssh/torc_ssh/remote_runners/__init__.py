"""Runners of torc on other machines: their start, state and end, their logs, and the tunnel to the server."""
