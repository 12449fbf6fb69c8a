"""The methods of the client, grouped by subject, and the functions that make a client."""
