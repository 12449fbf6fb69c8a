"""Http of the server."""
