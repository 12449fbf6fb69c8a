"""Auth of the server."""
