"""What a runner sends to the server and to plugins: exchange, registration, progress, take-over, events."""
