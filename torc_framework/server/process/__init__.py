"""Process of the server."""
