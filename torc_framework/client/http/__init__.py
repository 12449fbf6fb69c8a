"""HTTP requests to one server: address, connection, repetition, TLS, and the event stream."""
