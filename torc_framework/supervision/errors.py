"""The error of the room for people."""


class SupervisionError(Exception):
    """Attempts cannot be run on this machine, or nothing can be said about them yet; the message is the reason."""
