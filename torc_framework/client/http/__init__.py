"""Http of the client."""
